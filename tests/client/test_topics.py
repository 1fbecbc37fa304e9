"""Publishing and subscribing with the client, over each backend."""

from __future__ import annotations

import pytest

import qmodel
from qmodel.client.sync import Client
from qmodel.contract.operations import Subscribe


def test_a_message_becomes_a_job_for_each_subscription(client: Client) -> None:
    number = client.publish("orders.eu.created", {"id": 7})
    late = client.subscriptions.add("billing", "orders.>", "invoices", "Invoice", after=0, delay=0, lease=5)
    client.subscriptions.add("audit", ["users.*", "orders.*.created"], "audit", "Record")
    assert late.behind == 0
    client.publish("orders.us.created", text="plain")
    first, second = client.queues["invoices"].pop(2)
    assert (first.jid, first.subject, first.data) == (f"billing:{number}", "orders.eu.created", {"id": 7})
    assert second.text == "plain"
    assert client.queues["audit"].counts.waiting == 1
    assert [one.name for one in client.subscriptions.page()] == ["billing", "audit"]
    assert [one.subject for one in client.messages()] == ["orders.eu.created", "orders.us.created"]


def test_the_client_catches_up_step_by_step(client: Client) -> None:
    for n in range(3):
        client.publish("m", n)
    client.execute(Subscribe("s", ("m",), "q", "k", after=0, count=1))
    subscription = client.subscriptions["s"]
    assert subscription.behind == 2
    subscription.catch_up()
    assert subscription.behind == 0
    assert [job.data for job in client.queues["q"].pop(9)] == [0, 1, 2]


def test_a_subscription_ends(client: Client) -> None:
    subscription = client.subscriptions.add("s", "m", "q", "k")
    assert subscription.unsubscribe()
    assert not client.subscriptions.remove("s")
    assert client.subscriptions.get("s") is None
    with pytest.raises(qmodel.SubscriptionNotFound):
        client.subscriptions["s"]


def test_refusals_say_what_a_pattern_and_a_subject_are(client: Client) -> None:
    with pytest.raises(qmodel.BadPattern, match="or > for one or more at the end"):
        client.subscriptions.add("s", "a.>.b", "q", "k")
    with pytest.raises(qmodel.BadSubject, match="segments separated by dots"):
        client.publish("a..b")
