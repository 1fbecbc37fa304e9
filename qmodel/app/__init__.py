"""Apps: functions as job types, putting their jobs, and performing one attempt.

    from qmodel import App

    app = App("redis://localhost:6379/0")

    @app.job(queue="emails", retries=5, backoff="exponential")
    def send_email(to: str, *, subject: str = "") -> int: ...

    send_email.put("a@b", subject="Hello")

Workers perform the jobs: `qmodel worker jobs:app`.
"""

from typing import TYPE_CHECKING

from qmodel.app.application import App
from qmodel.app.backoff import exponential, fixed, polynomial
from qmodel.app.batches import BatchError, batched
from qmodel.app.connections import NoLoop, NotHere
from qmodel.app.context import Context, NoJob, current
from qmodel.app.errors import (
    BadArguments,
    BadResult,
    Cancelled,
    DeclarationError,
    Fail,
    LoadError,
    Release,
    Retry,
)
from qmodel.app.jobtype import JobType, Puts
from qmodel.app.load import load, load_job
from qmodel.app.outcome import Completed, Failed, Outcome, Released, Retried, Unknown
from qmodel.app.serializers import Json, Serializer
from qmodel.app.typed_jobs import TypedJob

if TYPE_CHECKING:
    from qmodel.app.attempt import aperform as aperform
    from qmodel.app.attempt import perform as perform
    from qmodel.app.typed_jobs_aio import AsyncTypedJob as AsyncTypedJob

__all__ = [
    "App",
    "AsyncTypedJob",
    "BadArguments",
    "BadResult",
    "BatchError",
    "Cancelled",
    "Completed",
    "Context",
    "DeclarationError",
    "Fail",
    "Failed",
    "JobType",
    "Json",
    "LoadError",
    "NoJob",
    "NoLoop",
    "NotHere",
    "Outcome",
    "Puts",
    "Release",
    "Released",
    "Retried",
    "Retry",
    "Serializer",
    "TypedJob",
    "Unknown",
    "aperform",
    "batched",
    "current",
    "exponential",
    "fixed",
    "load",
    "load_job",
    "perform",
    "polynomial",
]

# What only a worker or an event loop needs is loaded when it is used: it costs a producer 60 ms.
_LATER = {"aperform": "attempt", "perform": "attempt", "AsyncTypedJob": "typed_jobs_aio"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'qmodel.app' has no attribute '{name}'")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"qmodel.app.{_LATER[name]}"), name)
    return value
