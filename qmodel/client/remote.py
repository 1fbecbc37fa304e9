"""Remote control of workers: quiet, resume, stop.

A signal is metadata of the klass `SIGNALS` under the worker's name. A worker reads the signals every two seconds,
obeys, and writes its new state as metadata of the klass `STATES`. Users write signals and workers write states, so a
state never overwrites a newer signal. Each of them is an event (`noted`), as every change is.

A signal is meant for one process, not for a later process with the same name. So a worker deletes the metadata under
its name when it starts and when it ends, and a sender deletes the metadata of workers that are no longer listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from qmodel.contract.operations import MetadataGet, MetadataSet, MetadataUnset

Signal = Literal["quiet", "resume", "stop", "stop now"]

SIGNALS: Final = "qmodel.worker-signals"
STATES: Final = "qmodel.worker-states"

ANSWERS: Final[Mapping[str, str]] = {"quiet": "quiet", "resume": "at work", "stop": "stopping", "stop now": "stopping"}
"""The state that a worker writes after it obeyed a signal."""


class Signalled(NamedTuple):
    """The last signal to a worker, and the state that the worker wrote: '' until it has obeyed."""

    signal: str
    state: str

    @property
    def heard(self) -> bool:
        """Whether the worker has obeyed the signal."""
        return self.state == ANSWERS.get(self.signal)

    @property
    def told(self) -> str:
        """Describe signal and state in a few words; '' for a worker that works as usual."""
        if not self.heard:
            return f"told: {self.signal}"
        return "" if self.signal == "resume" else self.state


def sent(signal: Signal, names: Iterable[str]) -> list[MetadataSet]:
    """Make the operations that send a signal to workers."""
    return [MetadataSet(SIGNALS, name, signal) for name in names]


def answered(name: str, signal: str) -> MetadataSet:
    """Make the operation with which a worker answers a signal."""
    return MetadataSet(STATES, name, ANSWERS[signal])


def forgotten(names: Iterable[str]) -> list[MetadataUnset]:
    """Make the operations that delete the signals and states of workers."""
    return [MetadataUnset(klass, name) for name in names for klass in (SIGNALS, STATES)]


def asked() -> tuple[MetadataGet, MetadataGet]:
    """Make the operations that read all signals and all states."""
    return MetadataGet(SIGNALS), MetadataGet(STATES)


def paired(signals: Mapping[str, str], states: Mapping[str, str]) -> dict[str, Signalled]:
    """Join signals and states by the worker's name."""
    return {name: Signalled(signal, states.get(name, "")) for name, signal in sorted(signals.items())}


def stale(signals: Mapping[str, str], states: Mapping[str, str], listed: Collection[str]) -> list[str]:
    """List the names that have signals or states, but belong to no listed worker."""
    return sorted({*signals, *states} - set(listed))
