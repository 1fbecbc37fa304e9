"""Profiles of workers: on which host a worker runs, as which process, and with which settings.

A profile is metadata of the klass `PROFILES` under the worker's name, as JSON. `qmodel worker` writes it when it
starts, writes it again from time to time, because its use of memory changes, and deletes it when it ends. A worker that
starts also deletes profiles that were not renewed for an hour: their workers ended without a chance to say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from qmodel.contract.operations import MetadataGet, MetadataSet, MetadataUnset

PROFILES: Final = "qmodel.worker-profiles"

RENEWED_SECONDS: Final = 300.0
"""Seconds between two profiles of a worker."""

STALE_MS: Final = 3_600_000
"""A profile that was not renewed for this time, in milliseconds, is that of a dead worker."""

DELETED: Final = 100
"""The most profiles that a worker deletes when it starts."""

LONGEST: Final = 1024
"""The most bytes of a profile: those of a text of metadata."""


class Profile(NamedTuple):
    """What a worker says of itself. `memory` is the resident memory in bytes, 0 if unknown; `started_at` and `said_at`
    are moments in milliseconds; `queues` are the first ones if there are too many to store, of `queue_count`.
    """

    host: str
    pid: int
    version: str
    python: str
    runner: str
    concurrency: int
    memory: int
    started_at: int
    said_at: int
    queue_count: int
    queues: tuple[str, ...]


def written(name: str, profile: Profile) -> MetadataSet:
    """Make the operation that stores the profile of a worker, with as many queues as fit."""
    text = _encoded(profile)
    while len(text.encode()) > LONGEST:
        profile = profile._replace(queues=profile.queues[: len(profile.queues) // 2])
        text = _encoded(profile)
    return MetadataSet(PROFILES, name, text)


def _encoded(profile: Profile) -> str:
    return json.dumps(profile._asdict(), ensure_ascii=False, separators=(",", ":"))


def deleted(names: Iterable[str]) -> list[MetadataUnset]:
    """Make the operations that delete the profiles of workers."""
    return [MetadataUnset(PROFILES, name) for name in names]


def asked() -> MetadataGet:
    """Make the operation that reads all profiles."""
    return MetadataGet(PROFILES)


def read(entries: Iterable[tuple[str, str]]) -> dict[str, Profile]:
    """Decode the profiles by the worker's name. What is not a profile, such as one of a later version, is left out."""
    found = {name: _decoded(text) for name, text in entries}
    return {name: profile for name, profile in found.items() if profile is not None}


def _decoded(text: str) -> Profile | None:
    try:
        fields = json.loads(text)
        profile = Profile(**{**fields, "queues": tuple(map(str, fields["queues"]))})
    except (ValueError, TypeError, KeyError):
        return None
    whole = ("pid", "concurrency", "memory", "started_at", "said_at", "queue_count")
    return profile if all(type(getattr(profile, name)) is int for name in whole) else None


def stale(profiles: Mapping[str, Profile], now: int) -> list[str]:
    """List the workers with profiles that were not renewed, at most `DELETED`; the longest silent first."""
    silent = sorted((one.said_at, name) for name, one in profiles.items() if one.said_at < now - STALE_MS)
    return [name for _, name in silent[:DELETED]]
