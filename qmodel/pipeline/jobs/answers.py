"""Read the results of a request's jobs as columns.

Complete jobs and their results are kept as long as `jobs-history` and `jobs-history-count` say. So the results are
fetched when the request has ended. A job that is no longer kept by then has the state `gone`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmodel.client.sync import Client
from qmodel.contract import replies
from qmodel.contract.refusals import Refusal
from qmodel.errors import QmodelError, RequestNotFound
from qmodel.pipeline.arrow import array, pa
from qmodel.pipeline.jobs.write import Writing, keyed

GONE = "gone"
"""The state of a job that does not exist: it was canceled, or is no longer kept."""

ANSWERS: pa.Schema = pa.schema([
    ("jid", pa.string()), ("state", pa.string()), ("result", pa.string()), ("group", pa.string()),
    ("message", pa.string()), ("ended_at", pa.int64()),
])  # fmt: skip
"""The columns of an answer: the job, its state, its result or the failure, and when it ended; null where none."""


class AnswersWouldBeLost(QmodelError):
    """Raised for a request that has more jobs than the server keeps complete ones."""

    def __init__(self, id: str, jobs: int, kept: int) -> None:
        super().__init__(id, jobs, kept)
        self.id, self.jobs, self.kept = id, jobs, kept

    def __str__(self) -> str:
        return (
            f"Request {self.id} has {self.jobs} jobs, and {self.kept} complete ones are kept: answers would be lost. "
            f"Run: qmodel op config-set jobs-history-count {2 * self.jobs}, and the same again."
        )


def check_kept(client: Client, id: str) -> replies.Request:
    """Read the state of a request. Raises AnswersWouldBeLost, or RequestNotFound."""
    known = client.requests.get(id)
    if known is None:
        raise RequestNotFound(Refusal("REQUEST_NOT_FOUND", (id,)))
    kept = int(client.config["jobs-history-count"])
    if known.total > kept:
        raise AnswersWouldBeLost(id, known.total, kept)
    return known


def answers(client: Client, pieces: pa.RecordBatch, request: str, keys: Sequence[str]) -> pa.RecordBatch:
    """Read the answers of some pieces: their keys, and the columns of ANSWERS, in the order of the pieces."""
    jids = [f"{request}:{name}" for name in keyed(pieces, Writing(run=request, keys=tuple(keys), request=request))]
    found: dict[str, replies.Job] = {}
    found.update((job.jid, job) for job in client.multiget(jids))
    columns = zip(*(_answer(jid, found.get(jid)) for jid in jids), strict=True) if jids else ((),) * len(ANSWERS)
    arrays = [array(column, field.type) for column, field in zip(columns, ANSWERS, strict=True)]
    return pa.RecordBatch.from_arrays(
        [*(pieces.column(name) for name in keys), *arrays], names=[*keys, *(field.name for field in ANSWERS)]
    )


def _answer(jid: str, job: replies.Job | None) -> tuple[Any, ...]:
    if job is None:
        return jid, GONE, None, None, None, None
    failure = job.failure if job.state == "failed" else None
    group, message = (failure.group, failure.message) if failure else (None, None)
    return jid, job.state, job.result or None, group, message, job.ended_at or None
