"""The commands and options that the documents name exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from qmodel.cli import cli
from tests.docs.pages import name_of, pages

BLOCK = re.compile(r"^```(?:sh|console|dockerfile|ini)[^\n]*\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"`((?:\./dev|qmodel) [^`\n]+)`")
LINE = re.compile(r"(?:^|[=/\s])qmodel (\S.*)$", re.M)
WORDS = re.compile(r"\[(\"qmodel\"[^\]]*)\]")


def named(page: Path) -> Iterator[str]:
    """Yield the arguments of each `qmodel` command on a page, in blocks and in sentences."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.findall(text):
        yield from LINE.findall(block.replace("\\\n", " "))
        yield from (line.replace('"', "").replace(",", " ").removeprefix("qmodel ") for line in WORDS.findall(block))
    yield from (one.removeprefix("qmodel ") for one in INLINE.findall(text) if one.startswith("qmodel "))


def unknown(arguments: str) -> list[str]:
    """List the unknown commands and options in a command line."""
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError:
        words = arguments.split()
    context = click.Context(cli, info_name="qmodel")
    command: click.Command = cli
    wrong = []
    for place, word in enumerate(words):
        if isinstance(command, click.Group) and not word.startswith("-") and words[place - 1] not in ("--url", "--now"):
            found = command.get_command(context, word)
            if found is None:
                return [word] if re.fullmatch(r"[a-z][a-z-]+", word) else wrong
            command = found
        elif re.match(r"--[a-z]", word):
            options = {name for param in (*command.params, *cli.params) for name in param.opts}
            if word.partition("=")[0] not in {*options, "--help", "--version"}:
                wrong.append(word)
        elif word in ("|", "||", "&&", ">", ";"):
            break
    return wrong


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_and_options_that_are_named_exist(page: Path) -> None:
    assert [(line, wrong) for line in named(page) if (wrong := unknown(line))] == []


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ("put q K --unique k", []),
        ("putt q", ["putt"]),
        ("op pop q --wrker me", ["--wrker"]),
        ("pop q", ["pop"]),
        ("op putt q", ["putt"]),
        ("--url x put q K --dely 3", ["--dely"]),
    ],
)
def test_unknown_commands_and_options_are_found(arguments: str, wrong: list[str]) -> None:
    assert unknown(arguments) == wrong
