"""Snapshots as bytes: a store, written and read back.

They are pickles, which keep a hundred thousand jobs in a second, read by an unpickler that knows the classes of the
state and nothing else: it cannot be made to call anything. What a newer version has added to a class gets the value
that a new object has.
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
"""So many jobs in one part of a snapshot."""


def _harmless() -> Iterator[type]:
    """The classes that a snapshot is made of."""
    for found in pkgutil.iter_modules(state.__path__):
        module = importlib.import_module(f"qmodel.model.state.{found.name}")
        yield from (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    yield from (one for one in vars(replies).values() if isinstance(one, type) and issubclass(one, tuple))
    yield from (spec.cls for spec in CATALOGUE.values())  # what the journal recorded, and what a key has next
    yield Refusal
    yield from (deque, Ordered, sortedcontainers.SortedDict, sortedcontainers.SortedList, sortedcontainers.SortedSet)


_KNOWN: Final = {(cls.__module__, cls.__name__): cls for cls in _harmless()}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """A class that a snapshot may name."""
        found = _KNOWN.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of the state")
        return found


def parts(store: Store) -> Iterator[bytes]:
    """A store in parts: first all but the jobs, then the jobs, a thousand in each."""
    rest = {name: getattr(store, name) for name in Store.__slots__ if name != "jobs"}
    yield pickle.dumps(rest, 5)
    every = iter(store.jobs.values())
    while some := list(islice(every, PART)):
        yield pickle.dumps(some, 5)


def restore(store: Store, number: int, part: bytes) -> None:
    """Put a part back into a store; raises ValueError when it is not one."""
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
    """A new object of a class of the state."""
    cls = _KNOWN[module, name]
    return cls(*("" for _ in inspect.signature(cls).parameters))


def _completed(value: Any) -> Any:
    """A value in which objects of an older version have what they lack."""
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
