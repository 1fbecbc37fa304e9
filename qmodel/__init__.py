"""qmodel: a job queue whose behaviour is defined by an executable reference model.

>>> import qmodel
>>> client = qmodel.connect("memory://")
>>> emails = client.queues["emails"]
>>> emails.put("Send", {"to": 1}).state
'waiting'
>>> with emails.pop() as job:
...     print(job.klass, job.data)
Send {'to': 1}
>>> job.state
'complete'

The same on a server: `qmodel.connect("redis://localhost")`. Asynchronous: `qmodel.AsyncClient`.
Everything else that can be done: `qmodel.contract.operations`.
"""

import os as _os

# In a checkout whose file system has no symbolic links, the linked folders stand beside this one.
_root = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))
_has_project = _os.path.exists(_os.path.join(_root, "pyproject.toml"))
if _has_project and not _os.path.isdir(_os.path.join(__path__[0], "backends")):
    __path__.append(_root)

TYPE_CHECKING = False  # for type checkers; `typing` itself takes 7 ms to import
if TYPE_CHECKING:
    from qmodel.app import App as App
    from qmodel.app import Context as Context
    from qmodel.app import Fail as Fail
    from qmodel.app import Release as Release
    from qmodel.app import Retry as Retry
    from qmodel.client import flows as flows
    from qmodel.client.aio import AsyncClient as AsyncClient
    from qmodel.client.aio import AsyncJob as AsyncJob
    from qmodel.client.aio import AsyncQueue as AsyncQueue
    from qmodel.client.build import fingerprint as fingerprint
    from qmodel.client.cursor import Cursor as Cursor
    from qmodel.client.sync import Client as Client
    from qmodel.client.sync import Job as Job
    from qmodel.client.sync import Queue as Queue
    from qmodel.contract.arguments import Edge as Edge
    from qmodel.contract.events import Event as Event
    from qmodel.errors import BadArgument as BadArgument
    from qmodel.errors import BadPattern as BadPattern
    from qmodel.errors import BadSubject as BadSubject
    from qmodel.errors import BadValue as BadValue
    from qmodel.errors import ByShard as ByShard
    from qmodel.errors import CancelLimit as CancelLimit
    from qmodel.errors import ConnectError as ConnectError
    from qmodel.errors import CorruptError as CorruptError
    from qmodel.errors import CrossShard as CrossShard
    from qmodel.errors import DataError as DataError
    from qmodel.errors import DependencyCycle as DependencyCycle
    from qmodel.errors import DependencyLimit as DependencyLimit
    from qmodel.errors import DependencyNotFound as DependencyNotFound
    from qmodel.errors import DuplicateJid as DuplicateJid
    from qmodel.errors import DuplicateKey as DuplicateKey
    from qmodel.errors import EpochPassed as EpochPassed
    from qmodel.errors import FlowError as FlowError
    from qmodel.errors import Forked as Forked
    from qmodel.errors import HasDependents as HasDependents
    from qmodel.errors import JobCanceled as JobCanceled
    from qmodel.errors import JobExists as JobExists
    from qmodel.errors import JobExpired as JobExpired
    from qmodel.errors import JobFailed as JobFailed
    from qmodel.errors import JobNotFound as JobNotFound
    from qmodel.errors import JobRevoked as JobRevoked
    from qmodel.errors import LimitReached as LimitReached
    from qmodel.errors import LockLost as LockLost
    from qmodel.errors import NobodyPerforms as NobodyPerforms
    from qmodel.errors import NotADeadLetter as NotADeadLetter
    from qmodel.errors import NotConfirmed as NotConfirmed
    from qmodel.errors import NotEnded as NotEnded
    from qmodel.errors import NotLoadedError as NotLoadedError
    from qmodel.errors import NotWhole as NotWhole
    from qmodel.errors import OverBudget as OverBudget
    from qmodel.errors import OverCapacity as OverCapacity
    from qmodel.errors import QmodelError as QmodelError
    from qmodel.errors import QueueBusy as QueueBusy
    from qmodel.errors import QueueNotEmpty as QueueNotEmpty
    from qmodel.errors import RefusedError as RefusedError
    from qmodel.errors import RequestConflict as RequestConflict
    from qmodel.errors import RequestNotEnded as RequestNotEnded
    from qmodel.errors import RequestNotFound as RequestNotFound
    from qmodel.errors import RequestState as RequestState
    from qmodel.errors import ResultNotKept as ResultNotKept
    from qmodel.errors import ScheduleNotFound as ScheduleNotFound
    from qmodel.errors import ScheduleOver as ScheduleOver
    from qmodel.errors import SplitLimit as SplitLimit
    from qmodel.errors import SubscriptionNotFound as SubscriptionNotFound
    from qmodel.errors import TooWide as TooWide
    from qmodel.errors import UnknownOption as UnknownOption
    from qmodel.errors import Untagged as Untagged
    from qmodel.errors import WorkerNotSeen as WorkerNotSeen
    from qmodel.errors import WrongState as WrongState
    from qmodel.version import __version__ as __version__
    from qmodel.worker import Worker as Worker

# Loaded when first used: `import qmodel` alone costs next to nothing.
_HOME = {
    "client.aio": "AsyncClient AsyncJob AsyncQueue",
    "app": "App Context Fail Release Retry",
    "contract.arguments": "Edge",
    "client.sync": "Client Job Queue",
    "errors": "BadArgument BadPattern BadSubject BadValue ByShard CancelLimit ConnectError CorruptError CrossShard "
    "DataError DependencyCycle DependencyLimit DependencyNotFound DuplicateJid DuplicateKey EpochPassed "
    "FlowError Forked HasDependents JobCanceled JobExists JobExpired JobFailed JobNotFound JobRevoked "
    "LimitReached LockLost NobodyPerforms NotADeadLetter NotConfirmed NotEnded NotLoadedError NotWhole "
    "OverBudget OverCapacity QmodelError QueueBusy QueueNotEmpty RefusedError RequestConflict RequestNotEnded "
    "RequestNotFound RequestState ResultNotKept ScheduleNotFound ScheduleOver SplitLimit "
    "SubscriptionNotFound TooWide UnknownOption Untagged WorkerNotSeen WrongState",
    "contract.events": "Event",
    "client.build": "fingerprint",
    "client.cursor": "Cursor",
    "version": "__version__",
    "worker": "Worker",
}
_WHERE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = ["connect", "flows", *_WHERE]  # noqa: PLE0604


def connect(url: str = "memory://") -> "Client":
    """Open a client: `connect("memory://")`, `connect("redis://localhost:6379/0")`."""
    from qmodel.client.sync import Client

    return Client(url)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "flows":
        return import_module("qmodel.client.flows")
    if name not in _WHERE:
        raise AttributeError(f"module 'qmodel' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"qmodel.{_WHERE[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), "flows", *_WHERE})
