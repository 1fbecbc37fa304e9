"""A backend for Django's tasks: `django.tasks` of Django 6, or the package `django-tasks` for earlier versions.

    TASKS = {"default": {
        "BACKEND": "qmodel.integrations.django.QmodelBackend",
        "OPTIONS": {"url": "redis://localhost:6379/0"},
    }}

    DJANGO_SETTINGS_MODULE=shop.settings qmodel worker qmodel.integrations.django:app

A task is a job type of an App; its name is the path of its function. A job never causes an import: a worker knows the
tasks in the `tasks` modules of all installed applications, and the tasks that these modules import.

Django makes a backend for each thread; all backends of an alias share one App. OPTIONS sets what Django itself cannot
set: all options except `url`, `on_commit` and `outbox` are options of `App.job`. An exception fails a task at once, as
in Django, unless `retries` is given; after the death of a worker the task begins again in any case. With `on_commit`, a
task that is enqueued within a transaction is put when the transaction commits, and never if it is rolled back. With
`outbox`, True or the alias of a database, a task is a row of that transaction, which a worker puts: so it is not lost
either if the process dies after the commit (`qmodel.integrations.django_outbox`).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from qmodel.app import App, Completed, Context, Failed, JobType, Outcome, Retried
from qmodel.app.errors import DeclarationError, LoadError
from qmodel.contract import replies
from qmodel.errors import BadArgument, DataError
from qmodel.integrations.outbox import Relay, attach


def _framework() -> str:
    """Find the package that provides the tasks framework."""
    for name in ("django.tasks", "django_tasks"):
        try:
            importlib.import_module(name)
            return name
        except ImportError:
            continue
    raise ImportError(
        "Django's tasks need Django 6, or Django 4.2 to 5.2 with the package django-tasks. "
        "Run: pip install 'django>=6' (or: pip install django-tasks)"
    )


FRAMEWORK: Final = _framework()
_base: Any = importlib.import_module(f"{FRAMEWORK}.base")
_errors: Any = importlib.import_module(f"{FRAMEWORK}.exceptions")
_signals: Any = importlib.import_module(f"{FRAMEWORK}.signals")
BaseTaskBackend: Any = importlib.import_module(f"{FRAMEWORK}.backends.base").BaseTaskBackend
task: Any = importlib.import_module(FRAMEWORK).task
"""The decorator of the framework."""
InvalidTask: Any = getattr(_errors, "InvalidTask", None) or _errors.InvalidTaskError

_OWN_OPTIONS: Final = ("url", "on_commit", "outbox")
"""The options that are not those of a job type."""

_STATUS: Final = {"complete": "SUCCESSFUL", "failed": "FAILED", "running": "RUNNING"}
"""The framework's names of a job's states; all other states are READY."""


class Apps:
    """The Apps of this process's backends, and the tasks that are their job types."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._apps: dict[str, tuple[App, dict[str, Any]]] = {}

    def get(self, alias: str, options: Mapping[str, Any]) -> tuple[App, dict[str, Any]]:
        """Get the App of an alias with these options, and its tasks by the paths of their functions."""
        key = f"{alias} {sorted(options.items())!r}"
        with self._lock:
            if key not in self._apps:
                app = App(options.get("url"))
                app.middleware(_around)
                app.on("after")(partial(_finished, alias))
                if options.get("outbox"):
                    _relay_in_workers(app, options["outbox"])
                self._apps[key] = app, {}
            return self._apps[key]


_APPS = Apps()
_DECLARING = threading.Lock()


class QmodelBackend(BaseTaskBackend):  # type: ignore[misc]
    """Enqueues tasks as jobs, and reads their results."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.app, self.tasks = _APPS.get(alias, self.options)

    def validate_task(self, task: Any) -> None:
        """Declare a task as a job type, if this backend can perform it."""
        super().validate_task(task)
        with _DECLARING:
            if task.module_path not in self.tasks:
                self._declare(task)
                self.tasks[task.module_path] = task

    def _declare(self, task: Any) -> None:
        def perform(context: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
            return _perform(self, context, args, kwargs)

        options = {name: value for name, value in self.options.items() if name not in _OWN_OPTIONS}
        if "retries" not in options:
            options["fail_on"] = Exception
        try:
            self.app.job(name=task.module_path, **options)(perform)
        except DeclarationError as error:
            raise InvalidTask(str(error)) from error

    def enqueue(self, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Put a job for a task; give the task's result object."""
        given = self._given(task, args, kwargs)
        puts = self._kind(task).options(jid=given.id, **_options(task))
        if outbox := self.options.get("outbox"):
            from qmodel.integrations.django_outbox import jobs

            return self._tell(given, jobs.put(puts.make(given.args, given.kwargs), using=_database(outbox)))
        if self.options.get("on_commit"):
            from django.db import transaction

            transaction.on_commit(lambda: self._tell(given, puts.put(given.args, given.kwargs)))
            return given
        return self._tell(given, puts.put(given.args, given.kwargs))

    async def aenqueue(self, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the same in an event loop."""
        if self.options.get("on_commit") or self.options.get("outbox"):
            return await super().aenqueue(task, args, kwargs)
        given = self._given(task, args, kwargs)
        puts = self._kind(task).options(jid=given.id, **_options(task))
        return self._tell(given, await puts.aput(given.args, given.kwargs))

    def get_result(self, result_id: str) -> Any:
        """Read a task's result object by the id of its job."""
        try:
            job = self.app.client.jobs.get(result_id)
        except BadArgument:
            job = None
        return self._known(result_id, None if job is None else job.raw)

    async def aget_result(self, result_id: str) -> Any:
        """Do the same in an event loop."""
        try:
            job = await self.app.aclient.jobs.get(result_id)
        except BadArgument:
            job = None
        return self._known(result_id, None if job is None else job.raw)

    def check(self, **kwargs: Any) -> Iterator[Any]:
        """Warn if the jobs are stored where no worker can reach them, or if the outbox has no table."""
        from django.apps import apps
        from django.conf import settings
        from django.core import checks

        if self.options.get("outbox") and not apps.is_installed("qmodel.integrations.django_outbox"):
            yield checks.Error(
                f"TASKS[{self.alias!r}] has the option outbox, and the application of the outbox is not installed.",
                hint='Add "qmodel.integrations.django_outbox" to INSTALLED_APPS, and run: manage.py migrate',
                id="qmodel.E001",
            )
        if self.app.url.startswith(("memory:", "embedded:")) and not settings.DEBUG:
            yield checks.Warning(
                f"The tasks of TASKS[{self.alias!r}] are at {self.app.url}, in the memory of this process.",
                hint='No worker can reach them there. Give "OPTIONS": {"url": "redis://..."}.',
                id="qmodel.W001",
            )

    # ---- between tasks and jobs

    def _kind(self, task: Any) -> JobType[Any, Any, Any, Any]:
        return self.app.jobs[task.module_path]

    def _given(self, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the result object of a task that is not put yet; its arguments are converted as by JSON."""
        self.validate_task(task)
        from django.utils import timezone

        made = _result(task, os.urandom(16).hex(), self.alias, args, kwargs)
        object.__setattr__(made, "enqueued_at", timezone.now())
        return made

    def _tell(self, given: Any, job: object) -> Any:
        """Send the framework's signal that a task was enqueued."""
        _signals.task_enqueued.send(type(self), task_result=given)
        return given

    def _known(self, result_id: str, job: replies.Job | None) -> Any:
        if job is None:
            raise _errors.TaskResultDoesNotExist(result_id)
        if job.klass not in self.tasks:
            discover()
        if job.klass not in self.tasks:
            raise _errors.TaskResultDoesNotExist(f"Job {result_id} has the type {job.klass}, which is not a task here.")
        return _described(self.tasks[job.klass], self.alias, job)


def _database(outbox: str | bool) -> str:
    """Give the alias of the database of an outbox."""
    return outbox if isinstance(outbox, str) else "default"


def _relay_in_workers(app: App, outbox: str | bool) -> None:
    """Let each worker of an app put the jobs of an outbox, from its start to its end."""

    def make() -> Relay:
        from qmodel.integrations.django_outbox import jobs

        return jobs.relay(app.client, _database(outbox))

    attach(app, make)


def _options(task: Any) -> dict[str, Any]:
    """Convert a task's settings to options of its job. Priorities are negated: in qmodel the lower one runs first."""
    options = {"queue": task.queue_name, "priority": -task.priority}
    if task.run_after is not None:
        options["at"] = task.run_after.astimezone()
    return options


# ---- performing


def _perform(backend: QmodelBackend, context: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call the function of a task in a worker that has just leased its job."""
    task = backend.tasks[context.klass]
    result = _described(task, backend.alias, context.raw)
    _signals.task_started.send(type(backend), task_result=result)
    if task.takes_context:
        return task.call(_base.TaskContext(task_result=result), *args, **kwargs)
    return task.call(*args, **kwargs)


def _around(context: Context) -> Iterator[None]:
    """Close old and broken database connections before and after each task, as Django does for requests."""
    from django.db import close_old_connections

    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


def _finished(alias: str, context: Context, outcome: Outcome) -> None:
    """Send the framework's signal that a task has finished."""
    failed = isinstance(outcome, Failed) or (isinstance(outcome, Retried) and not context.raw.remaining)
    if not (failed or isinstance(outcome, Completed)):
        return
    now = round(datetime.now(UTC).timestamp() * 1000)
    job = context.raw._replace(state="failed" if failed else "complete", ended_at=now)
    if isinstance(outcome, Completed):
        job = job._replace(result=outcome.result_text)
    elif isinstance(outcome, Failed | Retried):
        job = job._replace(failure=replies.Failure(outcome.group or "", outcome.message, now, job.worker))
    backend = _backend(alias)
    _signals.task_finished.send(type(backend), task_result=_described(backend.tasks[job.klass], alias, job))


def _backend(alias: str) -> QmodelBackend:
    backend: QmodelBackend = importlib.import_module(FRAMEWORK).task_backends[alias]
    return backend


# ---- results


def _result(task: Any, jid: str, alias: str, args: Any, kwargs: Any, **known: Any) -> Any:
    times = dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at"))
    fields = {"status": "READY", "errors": [], "worker_ids": [], **times, **known}
    fields["status"] = _base.TaskResultStatus(fields["status"])
    return _base.TaskResult(task=task, id=jid, args=list(args), kwargs=dict(kwargs), backend=alias, **fields)


def _described(task: Any, alias: str, job: replies.Job) -> Any:
    """Make the framework's result object of a job."""
    given = _arguments(job)
    claims = [stage for stage in job.history if stage.what == "popped"]
    made = _result(
        _as_put(task, job),
        job.jid,
        alias,
        given.get("args", ()),
        given.get("kwargs", {}),
        status=_STATUS.get(job.state, "READY"),
        enqueued_at=_moment(job.put_at),
        started_at=_moment(claims[0].at if claims else 0),
        last_attempted_at=_moment(claims[-1].at if claims else 0),
        finished_at=_moment(job.ended_at),
        errors=[] if job.failure is None else [_error(job.failure)],
        worker_ids=[str(stage.named["worker"]) for stage in claims],
    )
    if job.state == "complete" and job.result:
        object.__setattr__(made, "_return_value", json.loads(job.result))
    return made


def _arguments(job: replies.Job) -> dict[str, Any]:
    try:
        found = json.loads(job.data)
    except ValueError as error:
        raise DataError(f"The data of job {job.jid} are not the data of a task: {error}") from error
    return found if isinstance(found, dict) else {}


def _as_put(task: Any, job: replies.Job) -> Any:
    """Copy the task with the priority, the queue and the time of its job, if the framework accepts them."""
    later = _moment(job.ready_at) if job.state == "scheduled" else None
    try:
        return replace(task, priority=-job.priority, queue_name=job.queue, run_after=later)
    except _errors.TaskException:
        return task


def _moment(at: int) -> datetime | None:
    if not at:
        return None
    from django.conf import settings
    from django.utils import timezone

    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment if settings.USE_TZ else timezone.make_naive(moment, timezone.get_default_timezone())


_LAST_LINE: Final = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.M)


def _error(failure: replies.Failure) -> Any:
    """Convert a failure, with the import path of its exception: from its traceback, or else from its group."""
    named = [name for name in _LAST_LINE.findall(failure.message) if name.rpartition(".")[2] == failure.group]
    path = named[-1] if named else failure.group
    return _base.TaskError(exception_class_path=path if "." in path else f"builtins.{path}", traceback=failure.message)


# ---- for workers


def discover() -> None:
    """Import the `tasks` modules of all installed applications; set up Django if needed."""
    import django
    from django.apps import apps
    from django.utils.module_loading import autodiscover_modules

    if not apps.ready:
        django.setup()
    autodiscover_modules("tasks")


def app_of(alias: str) -> App:
    """Get the App of a backend, with all tasks, for a worker. Raises LoadError for wrong settings."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    name = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    if not name and not settings.configured:
        raise LoadError("Django has no settings here.", "Set DJANGO_SETTINGS_MODULE, for example to shop.settings.")
    try:
        discover()
        backend = _backend(alias)
    except ImproperlyConfigured as error:
        raise LoadError(f"Django cannot be set up: {error}.", "Check its settings.") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise LoadError(
            f"There is no module {error.name!r}, which DJANGO_SETTINGS_MODULE names.", f"The folder is {os.getcwd()}."
        ) from None
    if not isinstance(backend, QmodelBackend):
        raise LoadError(
            f"TASKS[{alias!r}] is a {type(backend).__name__}.",
            'Set "BACKEND": "qmodel.integrations.django.QmodelBackend" in the settings.',
        )
    return backend.app


def __getattr__(name: str) -> Any:
    """Provide `app`: the App of the default backend, for `qmodel worker qmodel.integrations.django:app`."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app_of("default")
