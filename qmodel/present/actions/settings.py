"""Actions on throttles, metadata and options."""

from __future__ import annotations

from qmodel.contract import operations as ops
from qmodel.present.actions.kinds import Action, Once, either, said
from qmodel.present.fields import Fields


def _limits(fields: Fields) -> list[ops.Operation]:
    whole, span = fields.whole_or_none, fields.duration_or_none
    limits = (whole("concurrency"), whole("rate"), span("per"), whole("capacity"), whole("refill"), span("every"))
    return [ops.ThrottleSet(fields.needed("throttle"), *limits)]


def _option(fields: Fields) -> list[ops.Operation]:
    value = fields.duration("value") if fields.text("unit") == "ms" else fields.whole("value")
    return [ops.ConfigSet(fields.needed("option"), value)]


ACTIONS: dict[str, Action] = {
    "throttle-set": Once("Set all limits", make=_limits, tell=said("The limits of throttle {throttle} are set.")),
    "throttle-unset": Once(
        "Remove all limits",
        "Remove all limits of throttle {throttle}? Parked jobs are ready at once.",
        make=lambda f: [ops.ThrottleUnset(f.needed("throttle"))],
        tell=either("The limits of throttle {throttle} are removed.", "Throttle {throttle} had no limits."),
    ),
    "metadata-set": Once(
        "Save",
        make=lambda f: [ops.MetadataSet(f.needed("klass"), f.needed("key"), f.text("value"))],
        tell=said("{key} is saved."),
    ),
    "metadata-unset": Once(
        "Delete",
        make=lambda f: [ops.MetadataUnset(f.needed("klass"), f.needed("key"))],
        tell=either("{key} is deleted.", "There is no {key}."),
    ),
    "config-set": Once("Set", make=_option, tell=said("Option {option} is {value}.")),
    "config-unset": Once(
        "Default",
        make=lambda f: [ops.ConfigUnset(f.needed("option"))],
        tell=said("Option {option} has its default value."),
    ),
}
"""Every action by its name."""
