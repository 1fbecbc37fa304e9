"""What recurs: by cron in a time zone, at an interval, and so long after the end of each run.

It prints:

    heartbeat 1
    heartbeat 2
    report: at 09:00 on Mondays to Fridays, in Berlin; next at 09:00
    clean_up: every 3600 s
    heartbeat: 0.1 s after each run
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from qmodel import App

app = App()
beats: list[int] = []


@app.job(queue="recurring", cron="0 9 * * 1-5", tz="Europe/Berlin")
def report() -> None:
    """Every working day at nine, there."""


@app.job(queue="recurring", every=3600, missed="one", overlap="skip", offset=3600)
def clean_up() -> None:
    """Every hour; what was missed is made up for once, and no run begins while one goes on."""


@app.job(queue="recurring", after=0.1, limit=2)
def heartbeat() -> None:
    """So long after the end of the run before; twice."""
    beats.append(len(beats) + 1)
    print(f"heartbeat {beats[-1]}")


if __name__ == "__main__":
    import time

    from running import running

    with running(app, "recurring"):
        until = time.monotonic() + 30
        while len(beats) < 2 and time.monotonic() < until:
            time.sleep(0.01)
    client = app.client
    at = client.recurring["schedule.report"].next_at
    there = at.astimezone(ZoneInfo("Europe/Berlin")) if at else None
    print(f"report: at 09:00 on Mondays to Fridays, in Berlin; next at {there:%H:%M}")
    print(f"clean_up: every {client.recurring['schedule.clean_up'].interval.total_seconds():g} s")
    print(f"heartbeat: {app.schedules['schedule.heartbeat'].interval_ms / 1000} s after each run")
