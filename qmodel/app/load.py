"""Finding an app by `module:name`, for workers and tools."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

from qmodel.app.application import App
from qmodel.app.errors import LoadError
from qmodel.app.jobtype import JobType
from qmodel.errors import did_you_mean, hint


def load(where: str) -> App:
    """Find the app `module:name`; for `module` alone, the app that is called `app` or is the only one.

    The working directory is added to the path. Raises LoadError with one sentence and the next step. Exceptions of the
    module itself are raised as they are.
    """
    name, _, attribute = where.partition(":")
    found = _named(_imported(where, name), name, attribute)
    if not isinstance(found, App):
        raise LoadError(f"{where} is {_article(found)}, and not a qmodel.App.", "Name the App: jobs:app.")
    return _whole(found)


def load_job(where: str) -> JobType[..., Any, ..., Any]:
    """Find the job type of `module:function`, `module:app.klass` or `module:klass`, as `load` finds an app."""
    name, _, attribute = where.partition(":")
    module = _imported(where, name)
    owner, _, klass = attribute.rpartition(".")
    found = getattr(module, attribute, None)
    if isinstance(found, JobType):
        return found
    app = _named(module, name, owner)
    if not isinstance(app, App):
        raise LoadError(f"{name}:{owner} is {_article(app)}, and not a qmodel.App.", "Name the App: jobs:app.klass.")
    if klass not in _whole(app).jobs:
        known = ", ".join(f"{name}:{one}" for one in app.jobs) or "no job types in it"
        close = did_you_mean(klass, app.jobs)
        step = f"Did you mean {name}:{close}?" if close else f"There is {known}."
        raise LoadError(f"{where!r} names no job type.", step)
    return app.jobs[klass]


def _whole(app: App) -> App:
    """Import all modules that an app names, so that it has all its job types."""
    for name in app.imports:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            raise LoadError(
                f"The app imports {name!r}, and there is no module {error.name!r}.", "See App(imports=...)."
            ) from None
    return app


def _imported(where: str, name: str) -> Any:
    """Import a module by name, with the working directory on the path."""
    _check(where, name)
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    return _module(where, name, folder)


def _check(where: str, name: str) -> None:
    if name == "__main__":
        raise LoadError(
            "__main__ is the running program, and that is not your app.",
            "Name the file without its ending: jobs:app for the app in jobs.py.",
        )
    if "/" in name or name.endswith(".py"):
        module = name.removesuffix(".py").strip("./").replace("/", ".")
        raise LoadError(f"{where!r} is a file, not a module.", f"Write {module}:{where.partition(':')[2] or 'app'}.")
    if not name or name.startswith("."):
        raise LoadError(
            f"{where!r} names no module.", "Write module:name, for example jobs:app for the app in jobs.py."
        )


def _module(where: str, name: str, folder: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != name and not name.startswith(f"{missing}."):
            raise  # a module that this one imports is missing
        near = [one.removesuffix(".py") for one in sorted(os.listdir(folder)) if one.endswith(".py")]
        raise LoadError(
            f"There is no module {missing!r} in {folder} or on the path.", hint(name, near, "Here are")
        ) from None


def _named(module: Any, name: str, attribute: str) -> Any:
    apps = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if not attribute:
        distinct = {id(value): value for value in apps.values()}
        if "app" in apps or len(distinct) == 1:
            return apps.get("app") or next(iter(apps.values()))
        known = ", ".join(f"{name}:{key}" for key in apps) or "no App in it"
        raise LoadError(f"It is not clear which app of {name} to use.", f"Found: {known}.")
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = list(apps) or [key for key in vars(module) if not key.startswith("_")]
            raise LoadError(f"The module {name} has no {attribute!r}.", hint(attribute, names, "It has"))
        found = getattr(found, part)
    return found


def _article(found: Any) -> str:
    kind = type(found).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
