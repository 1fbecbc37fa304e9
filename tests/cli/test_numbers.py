"""Numbers and names that a command cannot use are refused before it begins."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from qmodel.cli import cli
from qmodel.cli.derive import hyphened
from qmodel.contract.operations import CATALOGUE
from tests.cli.conftest import Run

CHECKED_LATER = {"op", "worker", "call", "requests", *map(hyphened, CATALOGUE.values())}
"""Commands whose numbers are refused by what they call: by the worker's own checks, or by the operation."""


def numbers(group: click.Group, context: click.Context, path: str = "") -> Iterator[str]:
    """The options of commands that take any number."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from numbers(command, context, f"{path}{name} ")
        elif command is not None:
            found = [one for one in command.params if type(one.type) in (type(click.INT), type(click.FLOAT))]
            yield from (f"{path}{name} {one.opts[0]}" for one in found)


def test_every_number_of_a_command_has_a_range() -> None:
    found = [one for one in numbers(cli, click.Context(cli)) if one.split()[0] not in CHECKED_LATER]
    assert found == ["serve --seed"]


@pytest.mark.parametrize(
    "words",
    [
        "dev jobs --concurrency 0",
        "serve --connections 0",
        "serve --snapshot-every 0",
        "conformance fresh --seconds -1",
        "conformance run --steps 0",
        "conformance graph plain --edges -1",
        "outbox --database sqlite:// --every 0",
    ],
)
def test_a_number_out_of_range_is_refused(run: Run, words: str) -> None:
    refused = run(*words.split())
    assert refused.code == 2
    assert f"'{words.split()[-2]}'" in refused.err and "is not in the range" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plan", "There is no family 'plan'. Did you mean plain?"),
        ("plain+xyzzy", "There is no family 'xyzzy'."),
        ("xyzzy --night", "There is no family 'xyzzy'."),
        ("plain/0", "stands `each`, `fails`, or a budget from 1 to 9999 units"),
        ("plain --scope 2", "'2' is not a scope: write 2x1 for two jobs and one worker."),
    ],
)
def test_a_search_that_does_not_exist_is_refused(run: Run, words: str, said: str) -> None:
    refused = run("conformance", "graph", *words.split())
    assert refused.code == 2
    assert said in refused.err
