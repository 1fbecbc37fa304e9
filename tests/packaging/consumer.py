"""An application, as somebody outside this repository would write it.

It runs against the installed wheel, from another folder, and mypy --strict reads it there too.
"""

import qmodel


def main() -> None:
    client = qmodel.Client("memory://")
    emails = client.queues["emails"]

    jid: str = emails.put("Send", {"to": 1}).jid
    job = emails.pop()

    assert job is not None
    assert job.jid == jid
    job.complete()
    print("completed", job.jid)


if __name__ == "__main__":
    main()
