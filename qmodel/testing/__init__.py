"""Test code that puts and performs jobs: a queue for each test, a clock that the test advances, and assertions.

`Harness` is the queue of one test. Under pytest the fixtures `qm`, `qm_redis` and `qm_any` provide it (`plugin.py`).
"""

TYPE_CHECKING = False  # for type checkers; pytest imports this package at every start
if TYPE_CHECKING:
    from qmodel.testing.attempts import NobodyPerforms as NobodyPerforms
    from qmodel.testing.clock import VirtualClock as VirtualClock
    from qmodel.testing.harness import Harness as Harness
    from qmodel.testing.results import WouldWait as WouldWait
    from qmodel.testing.worker import Drained as Drained
    from qmodel.testing.worker import NeverEmpty as NeverEmpty

_WHERE = {
    "Drained": "worker",
    "Harness": "harness",
    "NeverEmpty": "worker",
    "NobodyPerforms": "attempts",
    "VirtualClock": "clock",
    "WouldWait": "results",
}

__all__ = ["Drained", "Harness", "NeverEmpty", "NobodyPerforms", "VirtualClock", "WouldWait"]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'qmodel.testing' has no attribute '{name}'")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"qmodel.testing.{_WHERE[name]}"), name)
    return value
