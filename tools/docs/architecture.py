"""`docs/architecture.md`: the text of `architecture.md` beside this file, with the tables of rooms and of imports."""

from __future__ import annotations

from pathlib import Path

from tools.architecture.picture import counted
from tools.architecture.rooms import FLOORS, ROOMS
from tools.docs.reference import MADE, table

TEXT = Path(__file__).with_suffix(".md")


def markdown() -> str:
    """The text of docs/architecture.md."""
    text = TEXT.read_text(encoding="utf-8").replace("{rooms}", _rooms()).replace("{arrows}", _arrows())
    return MADE.format("tools/docs/architecture.md, tools/architecture/rooms.py and the imports") + text


def _rooms() -> str:
    """A row for each room, from the top."""
    rows = []
    for floor, answers in reversed(FLOORS.items()):
        rooms = {name: room for name, room in ROOMS.items() if room.floor == floor}
        rows += [
            (f"{floor}: {answers}" if name == next(iter(rooms)) else "", f"`{name}`", room.holds)
            for name, room in rooms.items()
        ]
    return table(("floor", "room", "what is in it"), rows).rstrip()


def _arrows() -> str:
    """A row for each room, from the top: the rooms that it imports from, the most used one first."""
    rows = []
    for user in reversed(ROOMS):
        found = sorted(((counted()[user, used], used) for used in ROOMS[user].uses), key=lambda one: (-one[0], one[1]))
        rows.append((f"`{user}`", ", ".join(f"{used} {count}" for count, used in found) or "none"))
    return table(("room", "imports from"), rows).rstrip()
