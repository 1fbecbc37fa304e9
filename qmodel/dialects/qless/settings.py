"""Commands for the configuration, in qless's names and in seconds."""

from __future__ import annotations

from qmodel.contract import operations as ops
from qmodel.contract.replies import Setting
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.arguments import need
from qmodel.dialects.qless.session import QlessError, Reply, Session

APPLICATION = "qless"
"""The value of `application`, which is fixed."""

OF_QUEUE = ("heartbeat",)
"""Options for one queue: `<queue>-heartbeat` in qless is `heartbeat-<queue>` in the engine."""

ALWAYS = (
    "heartbeat",
    "grace-period",
    "jobs-history",
    "jobs-history-count",
    "stats-history",
    "histogram-history",
)
"""qless's own options: they are listed even if they are not set."""

IN_SECONDS = ("heartbeat", "grace-period", "jobs-history", "max-worker-age")


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
    """Show an option, or all options: those that are set, and qless's own."""
    if option is None:
        listed = [one for one in _settings(session) if one.is_set or one.option in ALWAYS]
        shown = [(_theirs(one.option), _value(one.option, one.value)) for one in listed]
        return texts.record([("application", APPLICATION), *shown])
    if option == "application":
        return APPLICATION
    found = {one.option: one.value for one in _settings(session)}
    name = _ours(option)
    if name not in found:
        return None
    value = _value(name, found[name])
    return value if isinstance(value, int) else repr(value)


def _settings(session: Session) -> tuple[Setting, ...]:
    settings: tuple[Setting, ...] = session.ask("config.get", ops.Config())
    return settings


def config_set(session: Session, option: str | None = None, value: str | None = None) -> Reply:
    """Set an option."""
    option, value = need("config.set", "option", option), need("config.set", "value", value)
    name = _ours(option)
    number = texts.number(value)
    if number is None or abs(number) >= texts.MOST / 1000:
        raise QlessError(f'config.set(): Arg "value" not a number: {texts.shown(value)}')
    if number < 0:
        raise QlessError(f'config.set(): Arg "value" must not be negative: {texts.shown(value)}')
    scaled = texts.milliseconds(number) if _scale(name) == 1000 else texts.whole(value)
    if scaled is None:
        raise QlessError(f'config.set(): Arg "value" not a whole number: {texts.shown(value)}')

    unit = " milliseconds" if _scale(name) == 1000 else ""
    sentences = {"BAD_VALUE": "Option {0} must be from {1} to {2}" + unit}
    session.ask("config.set", ops.ConfigSet(name, scaled), **sentences)
    session.log(("event", "config_set"), ("option", option), ("value", value))
    return None


def config_unset(session: Session, option: str | None = None) -> Reply:
    """Reset an option to its default; an unknown option is ignored."""
    option = need("config.unset", "option", option)
    if session.knows("config.unset", ops.ConfigUnset(_ours(option))):
        session.log(("event", "config_unset"), ("option", option))
    return None
