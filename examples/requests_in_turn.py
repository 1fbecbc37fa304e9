"""Requests: a big order and a small one take turns, each with a limit of its own.

The big one has come first. The small one does not wait until all of it is done.

It prints:

    the small one was done when the big one had done 3 of 9
    big: done 9, failed 0
"""

from __future__ import annotations

from qmodel import App

app = App()


@app.job(queue="images")
def resize(name: str) -> str:
    """Make an image small."""
    return f"small {name}"


if __name__ == "__main__":
    from running import running

    client = app.client
    for order, images in (("big", 9), ("small", 3)):
        with client.request(order, "images", limit=1) as request:
            for number in range(images):
                request.add("resize", {"name": f"{order}-{number}"}, name=str(number))
    ended: dict[str, int] = {}
    with running(app, "images"):
        client.requests["small"].wait(timeout=30)
        client.requests["big"].wait(timeout=30)
    done = 0
    for event in client.events():
        jid = str(event.named.get("jid", ""))
        done += event.event == "completed" and jid.startswith("big:")
        if event.event == "request_done" and event.named["request"] == "small":
            print(f"the small one was done when the big one had done {done} of 9")
    big = client.requests["big"].get()
    print(f"big: {big.state} {big.done}, failed {big.failed}")
