"""Convert the arguments of jobs between the form of tests and the stored form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any

from qmodel.app import JobType, Puts
from qmodel.client.convert import encode
from qmodel.client.sync import Job
from qmodel.contract.redaction import HEADERS
from qmodel.errors import DataError, hint

AnyJobType = JobType[..., Any, ..., Any]
Args = Mapping[str, Any] | Sequence[Any]
"""Some arguments of a job: by name, or the first ones in order."""


def klass_of(job_type: object) -> str | None:
    """Get the klass of a job type, or of a name. Raises TypeError for anything else."""
    kind = job_type._kind if isinstance(job_type, Puts) else job_type
    klass = kind.klass if isinstance(kind, JobType) else kind
    if klass is None or isinstance(klass, str):
        return klass
    raise TypeError(f"{job_type!r} is not a job type. Give a job type, or the name of a klass.")


def wanted_args(kind: AnyJobType | None, args: Args) -> dict[str, Any]:
    """Convert arguments to their stored form, by name. Raises TypeError for an argument that the job type lacks."""
    if isinstance(args, str):
        raise TypeError(f"Give args by name or in order, as {{'name': {args!r}}} or ({args!r},).")
    if not isinstance(args, Mapping):
        if kind is None:
            raise TypeError("The arguments of a klass without a job type have no order: give them by name.")
        if len(args) > len(kind.binding.names):
            raise TypeError(f"{kind.klass} takes {len(kind.binding.names)} arguments, not {len(args)}.")
        args = dict(zip(kind.binding.names, args, strict=False))
    if kind is not None and not _takes_any(kind):
        for name in args.keys() - set(kind.binding.names):
            raise TypeError(f"{kind.klass} takes no argument {name!r}. {hint(name, kind.binding.names, 'It takes')}")
    return {name: _plain(kind, name, value) for name, value in args.items()}


def _takes_any(kind: AnyJobType) -> bool:
    return any(p.kind is Parameter.VAR_KEYWORD for p in kind.binding.parameters)


def _plain(kind: AnyJobType | None, name: str, value: Any) -> Any:
    """Convert a value as the job type stores it; keep one that it cannot store, such as `mock.ANY`, as it is."""
    try:
        return as_stored(value if kind is None else kind.binding.plain({name: value})[name])
    except Exception:
        return value


def as_stored(value: object) -> Any:
    """Encode a value as JSON and decode it; keep one that cannot be stored, such as `mock.ANY`, as it is."""
    try:
        return json.loads(encode(value))
    except DataError:
        return value


def data_of(kind: AnyJobType | None, job: Job, *, defaults: bool = True) -> Any:
    """Read a job's data: the arguments by name, with defaults for the others; the text if it cannot be read."""
    try:
        data = json.loads(job.text) if kind is None else kind.load(job.text)
    except ValueError:
        return job.text
    if kind is None or not isinstance(data, dict):
        return data
    data.pop(HEADERS, None)
    return {**(_defaults(kind) if defaults else {}), **data}


def _defaults(kind: AnyJobType) -> dict[str, Any]:
    given = {p.name: p.default for p in kind.binding.parameters if p.default is not p.empty}
    return {name: _plain(kind, name, value) for name, value in given.items()}
