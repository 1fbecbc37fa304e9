"""Commands for the configuration, in qless's names and in seconds."""

from __future__ import annotations

import re

from qmodel.contract import operations as ops
from qmodel.contract.settings import OPTIONS, meant_by
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.arguments import need
from qmodel.dialects.qless.session import QlessError, Reply, Session

CONFIG = "qless:config"
"""The klass under whose metadata the texts of all options are kept that bindings have set."""

DEFAULTS: dict[str, str | int] = {
    "application": "qless",
    "heartbeat": 60,
    "stats-history": 30,
    "histogram-history": 7,
    "jobs-history-count": 50_000,
    "jobs-history": 604_800,
    "grace-period": 10,
}
"""What qless shows if nothing is set."""

DEFAULTS_OF_REQLESS: dict[str, str | int] = {
    "application": "reqless",
    "grace-period": "10",
    "heartbeat": "60",
    "jobs-history": "604800",
    "jobs-history-count": "50000",
    "max-job-history": "100",
    "max-pop-retry": "1",
    "max-worker-age": "86400",
}
"""What reqless shows if nothing is set."""

OF_QUEUE = ("heartbeat",)
"""Options for one queue: `<queue>-heartbeat` in qless is `heartbeat-<queue>` in the engine."""

MOST_ENTRIES = "max-job-history"
ENTRIES = 100
"""How many entries of a job's history qless keeps if nothing is set."""

HISTORY = "qless:history"
CHANGES = "changes"
"""The metadata that say when `max-job-history` was set, and to what; an entry of a history cuts those before it."""

MOST_CHANGES = 20
_CHANGE = re.compile(r"([0-9]{1,14}) (-?[0-9]{1,14});")

MOST_STAGES = 1000
LEAST_STAGES = 40
"""The engine keeps so many stages at least: the next entry of a history cuts it, not `max-job-history` itself."""

WORKER_AGE = "max-worker-age"

LEAST_AGE_MS = 86_400_000
"""The engine keeps silent workers for a day at least: an application that raises the age later sees them again."""

IN_SECONDS = ("heartbeat", "grace-period", "jobs-history", WORKER_AGE)


def _ours(option: str) -> str:
    """Convert qless's name of an option to the engine's."""
    for kind in OF_QUEUE:
        if option.endswith(f"-{kind}") and len(option) > len(kind) + 1:
            return f"{kind}-{option[: -len(kind) - 1]}"
    return option


def _theirs(option: str) -> str:
    """Convert the engine's name of an option to qless's."""
    for kind in OF_QUEUE:
        if option.startswith(f"{kind}-"):
            return f"{option[len(kind) + 1 :]}-{kind}"
    return option


def _scale(option: str) -> int:
    """Give the factor from qless's unit to the engine's unit of an option."""
    return 1000 if option in IN_SECONDS or option.startswith("heartbeat-") else 1


def _value(option: str, value: int) -> int | float:
    return texts.seconds(value) if _scale(option) == 1000 else value


def config_get(session: Session, option: str | None = None) -> Reply:
    """Show an option, or all options: those that are set, and the defaults."""
    kept = dict(session.ask("config.get", ops.MetadataGet(CONFIG)))
    shown: dict[str, str | int] = dict(DEFAULTS_OF_REQLESS if session.reqless and not session.early else DEFAULTS)
    of_engine = set()
    for one in session.ask("config.get", ops.Config()):
        name = _theirs(one.option)
        of_engine.add(name)
        text = kept.get(name)
        if text is not None and _scaled(one.option, text) in (one.value, None):
            shown[name] = text
        elif one.is_set:
            shown[name] = str(_value(one.option, one.value))
    shown |= {name: text for name, text in kept.items() if name not in of_engine}
    if option is not None:
        return shown.get(option)
    return texts.record(sorted(shown.items()))


def _scaled(name: str, text: str) -> int | None:
    """Give the engine's value of a text; None if it is out of the option's range."""
    number = texts.number(text)
    if number is None or abs(number) >= texts.MOST / 1000:
        return None
    return None if number < 0 else _bounded(name, number)


def config_set(session: Session, option: str | None = None, value: str | None = None) -> Reply:
    """Set an option. An application may keep options of its own; those that the engine knows must be numbers."""
    option, value = need("config.set", "option", option), need("config.set", "value", value)
    name = _ours(option)
    number = texts.number(value)
    meant = meant_by(name)
    if meant is not None and (number is None or abs(number) >= texts.MOST / 1000):
        raise QlessError(f'config.set(): Arg "value" not a number: {texts.shown(value)}')
    session.ask("config.set", ops.MetadataSet(CONFIG, option, value))
    if meant is not None and number is not None:
        given = min(max(_bounded(name, number), OPTIONS[meant].low), OPTIONS[meant].high)
        session.ask("config.set", ops.ConfigSet(name, given))
    if option == MOST_ENTRIES:
        _note_most(session, texts.whole(value) or 0)
    session.log(("option", option), ("event", "config_set"), ("value", value))
    return None


def _bounded(name: str, number: float) -> int:
    """Give the engine's value of a number; negative ones are 0. A history has stages that qless does not have."""
    if name == MOST_ENTRIES:
        return max(2 * int(number) + 2, LEAST_STAGES) if number == 1 or number > 2 else MOST_STAGES
    least = LEAST_AGE_MS if name == WORKER_AGE else 0
    return max(texts.milliseconds(number) if _scale(name) == 1000 else int(number), least)


def entries_most(session: Session) -> list[tuple[int, int]]:
    """When `max-job-history` was set, and to what, earliest first."""
    return [(int(at), int(most)) for at, most in _CHANGE.findall(session.note(HISTORY, CHANGES) or "")]


def _note_most(session: Session, most: int) -> None:
    """Note what `max-job-history` is from now on. Of many changes the first one kept holds since ever."""
    changes = [*entries_most(session), (session.now, most)][-MOST_CHANGES:]
    if len(changes) == MOST_CHANGES:
        changes[0] = (0, changes[0][1])
    text = "".join(f"{at} {most};" for at, most in changes)
    session.ask("config.set", ops.MetadataSet(HISTORY, CHANGES, text))


def worker_age(session: Session) -> int:
    """Give the milliseconds after which `workers` forgets a silent worker."""
    text, kept = session.note(CONFIG, WORKER_AGE), session.option(WORKER_AGE)
    number = texts.number(text)
    return texts.milliseconds(number) if number is not None and _scaled(WORKER_AGE, str(text)) in (kept, None) else kept


def config_unset(session: Session, option: str | None = None) -> Reply:
    """Reset an option to its default."""
    option = need("config.unset", "option", option)
    session.attempt(ops.ConfigUnset(_ours(option)))
    session.ask("config.unset", ops.MetadataUnset(CONFIG, option))
    if option == MOST_ENTRIES:
        _note_most(session, ENTRIES)
    session.log(("event", "config_unset"), ("option", option))
    return None
