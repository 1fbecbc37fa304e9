"""Signals to workers from afar: be quiet, go on, stop.

A signal is a word that is noted as metadata of the klass `SIGNALS`, under the worker's name. A worker looks every two
seconds, heeds it, and notes of the klass `STATES` what it does now. People write the one and workers the other, so no
signal is overwritten by an answer to the one before it; and each of them is an event (`noted`), as all that happens is.

A signal is for a process, and not for who bears its name later: a worker that begins or ends forgets what is noted
under its name, and who sends a signal forgets what is noted under names that are no longer on the list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from qmodel.contract.operations import MetadataGet, MetadataSet, MetadataUnset

Signal = Literal["quiet", "resume", "stop", "stop now"]

SIGNALS: Final = "qmodel.worker-signals"
STATES: Final = "qmodel.worker-states"

ANSWERS: Final[Mapping[str, str]] = {"quiet": "quiet", "resume": "at work", "stop": "stopping", "stop now": "stopping"}
"""What a worker notes that has heeded a signal."""


class Signalled(NamedTuple):
    """What a worker was told last, and what it said that it does now: '' until it has heard."""

    signal: str
    state: str

    @property
    def heard(self) -> bool:
        """Whether it has heeded what it was told."""
        return self.state == ANSWERS.get(self.signal)

    @property
    def told(self) -> str:
        """The two in a word or a few, for people: '' for one that works as usual."""
        if not self.heard:
            return f"told: {self.signal}"
        return "" if self.signal == "resume" else self.state


def sent(signal: Signal, names: Iterable[str]) -> list[MetadataSet]:
    """What sends a signal to workers."""
    return [MetadataSet(SIGNALS, name, signal) for name in names]


def answered(name: str, signal: str) -> MetadataSet:
    """What says that a worker has heeded a signal."""
    return MetadataSet(STATES, name, ANSWERS[signal])


def forgotten(names: Iterable[str]) -> list[MetadataUnset]:
    """What forgets signals and answers of workers."""
    return [MetadataUnset(klass, name) for name in names for klass in (SIGNALS, STATES)]


def asked() -> tuple[MetadataGet, MetadataGet]:
    """What reads all signals and all answers."""
    return MetadataGet(SIGNALS), MetadataGet(STATES)


def paired(signals: Mapping[str, str], states: Mapping[str, str]) -> dict[str, Signalled]:
    """What was told to each worker, and what it answered, by name."""
    return {name: Signalled(signal, states.get(name, "")) for name, signal in sorted(signals.items())}


def stale(signals: Mapping[str, str], states: Mapping[str, str], listed: Collection[str]) -> list[str]:
    """The names under which something is noted, and which are no worker's any more."""
    return sorted({*signals, *states} - set(listed))
