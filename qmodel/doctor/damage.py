"""The check of a namespace for damage that a step cannot mend by itself, and its repair (lua/state/repair.lua)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from qmodel.backends import bundle
from qmodel.doctor.environment import SERVERS, connection, is_serve
from qmodel.doctor.findings import FAIL, OK, SKIP, WARN, Asked, Finding, first


class NotChecked(Exception):
    """Raised where the check cannot run. The text says why."""


class Problem(NamedTuple):
    """A problem: its kind, its key, and facts of the kind."""

    kind: str
    key: str
    facts: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What is wrong."""
        return _SAID[self.kind].format(self.key, *self.facts, "", "")

    @property
    def mended(self) -> str:
        """What the repair has done."""
        return _MENDED[self.kind].format(self.key, *self.facts, "", "")


_SAID = {
    "pending": "a step stopped before its {1} of the key {0}; the next call tries it again, and fails if that fails",
    "type": "the key {0} is a {2}, not a {1}: something else writes under this prefix",
    "behind": "the counters ({0}) are at sequence {1}, behind the stream of events at {2}",
    "missing": "the list {1} has the member {2}, but its job ({0}) is missing",
    "dropped": "the job {0} was missing, and a call has dropped it from its list",
}

_MENDED = {
    "pending": "completed the step that stopped at {0}",
    "type": "renamed {0} to {3}; what it held before is lost: `qmodel doctor --keys` names jobs that are in no list",
    "behind": "raised the sequence to {2}",
    "missing": "dropped {2} from {1}",
    "dropped": "forgot that {0} was missing",
}


def damage(at: Asked) -> Iterator[Finding]:
    """Check for kept commands, keys of a wrong type, a sequence behind its stream, and ids without a job."""
    call = _caller(at)
    if call is None:
        return
    try:
        found = _problems(call("examine"))
    except NotChecked as why:
        yield Finding(SKIP, f"damage to single keys was not checked: {why}")
        return
    if not found:
        yield Finding(OK, "no key is damaged, and no step waits for its completion")
        return

    @cache
    def mend() -> str:
        return "; ".join(dict.fromkeys(one.mended for one in _problems(call("mend"))))

    def findings() -> Iterator[Finding]:
        for one in found:
            level = WARN if one.kind in ("dropped", "pending") else FAIL
            yield Finding(level, one.sentence, "Run: qmodel doctor --resolve", mend)

    yield from first(findings(), "damaged keys")


def _problems(reply: Any) -> list[Problem]:
    texts = [[word.decode() if isinstance(word, bytes) else str(word) for word in one] for one in reply]
    return [Problem(kind, key, tuple(facts)) for kind, key, *facts in texts]


def _caller(at: Asked) -> Callable[[str], Any] | None:
    """Give what calls one of the two functions; nothing for a backend that has no keys."""
    backend: Any = at.client.backend
    if type(backend).__module__ == "qmodel.backends.embedded.backend":
        return lambda name: backend.namespace.call(f"{bundle.LIBRARY}_{name}", [])
    if at.url.partition("://")[0] not in SERVERS:
        return None
    import redis

    def call(name: str) -> Any:
        with connection(backend) as server:
            if is_serve(server):
                raise NotChecked("qmodel serve has none; it checks the files of its data folder when it starts")
            try:
                return server.execute_command(*_words(backend, name))
            except redis.ResponseError as error:
                if "unction" in str(error) or str(error).startswith("NOSCRIPT"):
                    raise NotChecked(f"the server does not have the library of this version ({error})") from None
                raise

    return call


def _words(backend: Any, name: str) -> tuple[str | int, ...]:
    """The command that calls one of the two functions, or the same in the script."""
    from qmodel.backends.redis.setup import script_digest

    if backend.found.functions:
        return "FCALL", f"{bundle.LIBRARY}_{name}", 1, backend.options.prefix
    return "EVALSHA", script_digest(), 1, backend.options.prefix, name
