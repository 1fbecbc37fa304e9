"""Convert a store to bytes, and back.

The bytes are pickles, which write a hundred thousand jobs in a second. The unpickler accepts only the classes of the
state, so a changed file cannot make it call anything else. Attributes that a newer version has added to a class get the
values of a new object.
"""

from __future__ import annotations

import importlib
import inspect
import io
import pickle
import pkgutil
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

import sortedcontainers

from qmodel.contract import replies
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import state
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.store import Store

PART: Final = 1000
"""Jobs in one part of a snapshot."""


def _state_classes() -> Iterator[type]:
    """List the classes that a snapshot consists of."""
    for found in pkgutil.iter_modules(state.__path__):
        module = importlib.import_module(f"qmodel.model.state.{found.name}")
        yield from (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    yield from (one for one in vars(replies).values() if isinstance(one, type) and issubclass(one, tuple))
    yield from (spec.cls for spec in CATALOGUE.values())  # in journal entries, and in jobs queued behind a key
    yield Refusal
    yield from (deque, Ordered, sortedcontainers.SortedDict, sortedcontainers.SortedList, sortedcontainers.SortedSet)


_KNOWN: Final = {(cls.__module__, cls.__name__): cls for cls in _state_classes()}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Find a class of the state; refuse all others."""
        found = _KNOWN.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not a class of the state")
        return found


def parts(store: Store) -> Iterator[bytes]:
    """Convert a store to parts: first everything except the jobs, then the jobs, a thousand in each part."""
    rest = {name: getattr(store, name) for name in Store.__slots__ if name != "jobs"}
    yield pickle.dumps(rest, 5)
    every = iter(store.jobs.values())
    while some := list(islice(every, PART)):
        yield pickle.dumps(some, 5)


def restore(store: Store, number: int, part: bytes) -> None:
    """Restore a part into a store. Raises ValueError when the bytes are not a part."""
    try:
        found = _Reader(io.BytesIO(part)).load()
        if number == 0:
            for name, value in found.items():
                setattr(store, name, _completed(value))
        else:
            store.jobs |= {job.jid: _completed(job) for job in found}
    except (pickle.UnpicklingError, AttributeError, EOFError, TypeError, KeyError, IndexError) as error:
        raise ValueError(str(error)) from error


@cache
def _new(module: str, name: str) -> Any:
    """Make a new object of a class of the state."""
    cls = _KNOWN[module, name]
    return cls(*("" for _ in inspect.signature(cls).parameters))


def _completed(value: Any) -> Any:
    """Add missing attributes to the objects of an older version."""
    if isinstance(value, dict):
        for one in value.values():
            _completed(one)
    elif type(value).__module__.startswith("qmodel.model.state."):
        for name in type(value).__slots__:
            if hasattr(value, name):
                if type(getattr(value, name)).__module__.startswith("qmodel.model.state."):
                    _completed(getattr(value, name))
            else:
                default = getattr(_new(type(value).__module__, type(value).__name__), name)
                setattr(value, name, type(default)() if isinstance(default, list | dict | Ordered) else default)
    return value
