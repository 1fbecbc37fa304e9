"""`docs/reference/client.md`: the methods of the synchronous client, by section of the catalogue.

The section of a method is the section of the operation that its source names. `SECTION_OF` has the sections of the
methods that leave this to another function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import qmodel
from qmodel.client import sync
from qmodel.client.sync_executor import Executor
from qmodel.contract.operations import CATALOGUE, SECTIONS
from tools.docs.reference import MADE, heading

OPERATION = re.compile(r"\bops\.(\w+)")
"""An operation that the source of a method names."""

SECTION_OF = {
    **dict.fromkeys(("Queue.new", "Queue.put", "Queue.put_many", "Job.move"), "put"),
    "Queue.unfail": "recover",
    **dict.fromkeys(("Client.pop", "Queue.pop", "Queue.peek"), "pop"),
    **dict.fromkeys(("Job.cancel", "Job.delete"), "remove"),
    **dict.fromkeys(
        ("Request.add", "Request.data", "Request.results", "Request.wait", "Requests.open", "Requests.put"), "request"
    ),
    **dict.fromkeys(("Queue.recur", "RecurringJob.advance"), "recur"),
    **dict.fromkeys(("Queue.throttle", "Throttle.keys", "Throttles.family"), "throttle"),
    **dict.fromkeys(("Client.publish", "Subscriptions.add", "Subscription.unsubscribe"), "publish"),
    **dict.fromkeys(("Client.follow", "Executor.cursor", "Executor.newest", "Executor.latest"), "read"),
    **dict.fromkeys(("Client.job_types", "Job.results", "Jobs.get_many", "Workers.profiles"), "read"),
    **dict.fromkeys(("Queue.pause", "Queue.unpause", "Queue.forget", "Config.all"), "administer"),
    **dict.fromkeys(("Workers.quiet", "Workers.resume", "Workers.stop", "Workers.signals"), "administer"),
}
"""The sections of methods that build their operation elsewhere."""

BY_CLASS = {spec.cls.__name__: spec for spec in CATALOGUE.values()}

OPTIONS = ("show_root_heading: false", "show_root_toc_entry: false", "inherited_members: true")
"""How mkdocstrings shows the module of options."""

OTHERS = "Connections, waiting and remote control"
"""The heading of the methods that belong to no section."""


WITHIN = ("Results", "WaitingExecutor")
"""The classes of the client that are no part of its interface."""


class Method(NamedTuple):
    """A public method or property of a class of the client."""

    cls: type
    name: str

    @property
    def title(self) -> str:
        """The class and the name: `Queue.put`."""
        return f"{self.cls.__name__}.{self.name}"

    @property
    def path(self) -> str:
        """The place from which it can be imported."""
        return f"{self.cls.__module__}.{self.title}"

    @property
    def source(self) -> str:
        """The source of the body."""
        member = vars(self.cls)[self.name]
        lines = inspect.getsource(getattr(member, "fget", member))
        return lines.partition('"""')[2]


def classes() -> list[type]:
    """List the classes of the client: those of its main module first, each in the order of the source."""
    found = [
        one
        for name, one in vars(sync).items()
        if isinstance(one, type) and one.__module__.startswith("qmodel.client.sync") and name not in WITHIN
    ]
    return sorted((*found, Executor), key=lambda one: one.__module__)


def methods() -> list[Method]:
    """List the public methods and properties of all classes."""
    return [
        Method(cls, name)
        for cls in classes()
        for name, member in vars(cls).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        if not hasattr(cls, "_fields")
    ]


def section_of(method: Method) -> str | None:
    """Find the section of a method, or None. `Put` counts only where it is the only operation: it is also a type."""
    found = [BY_CLASS[name] for name in OPERATION.findall(method.source) if name in BY_CLASS]
    others = [spec for spec in found if spec.name != "put"]
    return SECTION_OF.get(method.title) or next((spec.section for spec in (*others, *found)), None)


def by_section() -> dict[str | None, list[Method]]:
    """Group the methods by section; None, the last key, has the methods that belong to no section."""
    found: dict[str | None, list[Method]] = {section: [] for section in (*SECTIONS, None)}
    for method in methods():
        found[section_of(method)].append(method)
    return found


def _method(method: Method) -> str:
    return f"::: {method.path}\n    options:\n      heading: {method.title}\n      toc_label: {method.title}\n"


def _methods() -> Iterator[str]:
    for section, found in by_section().items():
        yield f"## {heading(section) if section else OTHERS}\n"
        yield from map(_method, found)


def _class(cls: type) -> str:
    without = "" if hasattr(cls, "_fields") else "    options:\n      members: false\n"
    return f"::: {cls.__module__}.{cls.__name__}\n{without}"


PAGE = """\
# The client

`qmodel.connect(url)` opens a client. Every operation of [the catalogue](../catalogue.md) is a method of the client, of
a queue, of a job, or of a collection such as `client.jobs`. The methods are listed by section of the catalogue. The
asynchronous client, `qmodel.AsyncClient`, has the same methods with `await`.

::: qmodel.connect

{methods}
## Classes

{classes}
{options}## Attributes of a job

{attributes}
## Keys and edges

{keys}"""


def _options() -> str:
    """Document the keyword arguments that several methods share, if they have a module of their own."""
    if find_spec("qmodel.client.options") is None:
        return ""
    shown = "\n".join(f"      {line}" for line in OPTIONS)
    return (
        f"## Options\n\nKeyword arguments of several methods.\n\n::: qmodel.client.options\n    options:\n{shown}\n\n"
    )


def _attributes() -> str:
    """Document the classes from which jobs, recurring jobs and subscriptions take their properties."""
    bases = (
        base
        for cls in (sync.Job, sync.RecurringJob, sync.Subscription)
        for base in cls.__mro__[1:-1]
        if any(isinstance(member, property) for member in vars(base).values())
    )
    return "\n".join(f"::: {base.__module__}.{base.__name__}\n" for base in (*bases, vars(sync)["DependencyResults"]))


def _keys() -> str:
    return "\n".join(f"::: {one.__module__}.{one.__name__}\n" for one in (qmodel.fingerprint, qmodel.Edge))


def markdown() -> str:
    """Write the text of docs/reference/client.md."""
    page = PAGE.format(
        methods="\n".join(_methods()),
        classes="\n".join(map(_class, classes())),
        options=_options(),
        attributes=_attributes(),
        keys=_keys(),
    )
    return MADE.format("tools/docs/client.py and qmodel/client") + page
