"""Tasks, declared as in an application."""

from __future__ import annotations

from typing import Any

from qmodel.integrations.django import FRAMEWORK

if FRAMEWORK == "django.tasks":
    from django.tasks import task
else:
    from django_tasks import task


class OutOfStock(Exception):
    """Nothing is left."""


@task()
def add(x: int, y: int = 0) -> int:
    """Give a sum."""
    return x + y


@task(queue_name="emails", priority=10)
async def greet(name: str) -> str:
    """Greet somebody, in an event loop."""
    return f"Hello {name}"


@task(takes_context=True)
def told(context: Any) -> list[Any]:
    """Give what the context says."""
    return [context.attempt, context.task_result.id]


@task()
def order(what: str) -> None:
    """Fail."""
    raise OutOfStock(what)


@task()
def divide() -> float:
    """Fail with an exception of Python's own."""
    return 1 / 0


@task(backend="patient")
def flaky() -> None:
    """Fail in a backend that tries again."""
    raise OutOfStock("for now")
