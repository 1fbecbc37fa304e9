"""The rooms of the house: the first-level packages of qmodel/, and what each may import. This is the only such table.

A room stands on a floor. It imports from its own floor and from lower floors, and exactly from the rooms that are
listed for it: a new arrow between two rooms is a decision, made here. tests/test_architecture.py compares the table
with the source.
"""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """A room: its floor (1 is the lowest), what is in it in one sentence, and the rooms that it imports from."""

    floor: int
    holds: str
    uses: frozenset[str]


def _room(floor: int, holds: str, uses: str = "") -> Room:
    return Room(floor, holds, frozenset(uses.split()))


FLOORS = {
    1: "what can be asked, open to every room",
    2: "what it means, and how it is written",
    3: "what executes it",
    4: "who asks",
    5: "what performs jobs, and how it is shown",
    6: "products beside the faces",
    7: "the faces",
    8: "the front door",
}
"""The floors from the bottom to the top, with the question that each answers."""

ROOMS: dict[str, Room] = {
    "contract": _room(1, "The catalogue: operations and their arguments, replies, events, refusals, states of a job."),
    "errors": _room(1, "The exceptions: one class for each refusal.", "contract"),
    "processes": _room(1, "Functions that run in other processes of this machine.", "errors"),
    "runtime": _room(1, "What a process takes from its machine: time, randomness, threads; the simulator replaces it."),
    "version": _room(1, "The version of qmodel."),
    "wire": _room(2, "How operations, replies and journal entries are encoded and decoded.", "contract"),
    "model": _room(2, "The reference model: what each operation does to the store.", "contract wire"),
    "backends": _room(
        3,
        "What executes operations: the model in memory, the Lua library on a server or embedded in the process.",
        "contract errors model runtime version wire",
    ),
    "client": _room(4, "The Python client, synchronous and asynchronous.", "backends contract errors model runtime"),
    "dialects": _room(4, "Protocols of other queues (qless), translated to operations.", "backends contract model"),
    "present": _room(
        5, "How things are shown and acted on: durations, counts, histograms, actions.", "client contract errors model"
    ),
    "app": _room(
        5, "Job types: functions declared as jobs, with their options.", "client contract errors model present runtime"
    ),
    "telemetry": _room(5, "Logs, metrics and traces.", "app client contract errors model version"),
    "worker": _room(
        5,
        "The process that pops jobs and performs them.",
        "app backends client contract errors model present processes runtime telemetry version",
    ),
    "testing": _room(
        6, "What users need to test their jobs: the pytest plugin.", "app backends client contract errors present"
    ),
    "integrations": _room(
        6,
        "Django's tasks as jobs; outboxes for Django and SQLAlchemy.",
        "app client contract errors model present runtime wire",
    ),
    "conformance": _room(
        6,
        "Checks of any backend or binding against the model: histories, comparison, the kit.",
        "backends contract dialects errors model present processes version wire",
    ),
    "serve": _room(
        6,
        "A server in Python that speaks the protocol of Redis and executes the model.",
        "backends conformance contract dialects errors model present runtime version wire",
    ),
    "simulator": _room(
        6,
        "Client, worker, App and serve in one process, in virtual time, with faults drawn by a seed.",
        "app backends client contract errors model present processes runtime serve worker",
    ),
    "pipeline": _room(
        6,
        "Archives of events and journals, statistics, the audit, jobs from tables; on one machine or on Spark.",
        "backends client conformance contract errors model present processes version wire",
    ),
    "planning": _room(
        6,
        "Capacity planning: queues simulated with the model itself.",
        "contract errors model pipeline present processes",
    ),
    "doctor": _room(
        6,
        "Checks of an installation: server, settings, jobs, journal.",
        "app backends client contract errors model pipeline present version",
    ),
    "http": _room(7, "The HTTP interface.", "backends client contract errors version wire"),
    "web": _room(
        7,
        "The pages for people.",
        "backends client contract doctor errors http model present version",
    ),
    "top": _room(7, "The live view in a terminal.", "client contract errors present"),
    "cli": _room(
        7,
        "The command line.",
        "app backends client conformance contract dialects doctor errors http integrations model pipeline planning "
        "present processes serve telemetry top version web wire worker",
    ),
    "qmodel": _room(
        8, "The names that users import, and `python -m qmodel`.", "app cli client contract errors version worker"
    ),
}
"""Each room, from the bottom to the top."""
