"""A throttled API: no more calls at a time than somebody else's server bears, whoever makes them.

Six workers' threads want to call it, and a throttle lets two through. A job that has to wait holds no thread.

It prints:

    6 calls, at most 2 at a time
"""

from __future__ import annotations

import threading
import time

from qmodel import App

app = App()
at_once: list[int] = [0]
most: list[int] = [0]
lock = threading.Lock()


@app.job(queue="calls", throttles=["their-api"])
def call(number: int) -> None:
    """Call the API, and see how many do."""
    with lock:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
    time.sleep(0.05)
    with lock:
        at_once[0] -= 1


if __name__ == "__main__":
    from running import running

    app.client.throttles["their-api"].set(concurrency=2)
    jobs = call.put_many([(number,) for number in range(6)])
    with running(app, "calls", concurrency=6):
        app.client.wait(jobs, timeout=30)
    print(f"{len(jobs)} calls, at most {most[0]} at a time")
