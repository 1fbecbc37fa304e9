"""Emails: what fails is tried again, and what cannot succeed is not.

It prints:

    bob@example.com: the server is busy
    ada@example.com: sent
    bob@example.com: sent at attempt 2
    eve@example: NoSuchAddress
"""

from __future__ import annotations

from qmodel import App, Context, Fail, JobFailed
from qmodel.app import fixed

app = App()
busy = {"bob@example.com"}


@app.job(queue="emails", retries=5, backoff=fixed(0.2))
def send_email(context: Context, to: str) -> str:
    """Send an email; the first one to Bob meets a server that is busy."""
    if not to.endswith(".com"):
        raise Fail("NoSuchAddress", f"{to} is no address")
    if to in busy:
        busy.remove(to)
        print(f"{to}: the server is busy")
        raise ConnectionError("the server is busy")
    return "sent" if context.attempt == 1 else f"sent at attempt {context.attempt}"


if __name__ == "__main__":
    from running import running

    jobs = {to: send_email.put(to) for to in ("bob@example.com", "ada@example.com", "eve@example")}
    with running(app, "emails"):
        for to in sorted(jobs):
            try:
                print(f"{to}: {jobs[to].wait(timeout=30)}")
            except JobFailed as failed:
                print(f"{to}: {failed.group}")
