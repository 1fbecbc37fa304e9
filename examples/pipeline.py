"""A pipeline: steps that wait for each other, as a flow that is put in one step.

It prints:

    3 rows, the longest word is 'queue'
    ['fetch', 'clean', 'clean', 'report']
"""

from __future__ import annotations

from qmodel import App, Context
from qmodel.client import flows

app = App()


@app.job(queue="pipeline")
def fetch(lines: list[str]) -> list[str]:
    """Fetch what the others work on."""
    return lines


@app.job(queue="pipeline")
def clean(context: Context, letters: str) -> list[str]:
    """Keep the lines that begin with one of some letters."""
    (lines,) = context.results.values()
    return [line for line in lines if line[0] in letters]


@app.job(queue="pipeline")
def report(context: Context) -> str:
    """Put together what the cleaners gave."""
    rows = [line for lines in context.results.values() for line in lines]
    return f"{len(rows)} rows, the longest word is {max(rows, key=len)!r}"


def pipeline() -> flows.Flow:
    """A fetch, two that clean side by side, and a report."""
    side_by_side = flows.group(clean.make("abcdefghijklm"), clean.make("nopqrstuvwxyz"))
    return flows.chain(fetch.make(["a", "job", "queue"]), side_by_side, report.make(), on_failure="fail")


if __name__ == "__main__":
    from running import running

    jobs = app.client.put_flow(pipeline())
    with running(app, "pipeline", concurrency=2):
        print(jobs[-1].wait(timeout=30))
    print([job.klass for job in jobs])
