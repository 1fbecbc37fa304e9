"""Flows: how they are put together, put, resumed, looked at and drawn."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from qmodel import Client, Edge, FlowError
from qmodel.client import flows
from qmodel.client.flow_jobs import COLOURS
from qmodel.contract import operations as ops


@pytest.fixture
def client() -> Client:
    return Client("memory://")


def new(client: Client, *jids: str) -> list[ops.Put]:
    """Jobs of those ids."""
    return [client.queues["q"].new("k", jid=jid) for jid in jids]


def run(client: Client, broken: str = "") -> list[str]:
    """Perform all that can be performed, in its order; one job fails."""
    ran = []
    while job := client.queues["q"].pop():
        ran.append(job.jid)
        if job.jid == broken:
            job.fail("g", "m")
        else:
            job.complete(f"of {job.jid}")
    return ran


# ---- putting together


def test_a_chain_runs_its_first_part_first(client: Client) -> None:
    client.put_flow(flows.chain(*new(client, "z", "y", "x")))
    assert run(client) == ["z", "y", "x"]


def test_a_chord_gives_its_callback_the_results(client: Client) -> None:
    a, b, c = new(client, "a", "b", "c")
    client.put_flow(flows.chord([a, b], c))
    for _ in "ab":
        job = client.queues["q"].pop()
        assert job
        job.complete(f"of {job.jid}")
    callback = client.queues["q"].pop()
    assert callback
    assert (callback.jid, dict(callback.results())) == ("c", {"0": "of a", "1": "of b"})


def test_a_callback_that_ignores_failures_learns_of_them(client: Client) -> None:
    a, b, c = new(client, "a", "b", "c")
    client.put_flow(flows.chord([a, b], c, on_failure="ignore"))
    assert run(client, "a")[:2] == ["a", "b"]
    assert client.jobs["c"].state == "complete"


def test_parts_may_be_flows(client: Client) -> None:
    a, b, c, d, e = new(client, "a", "b", "c", "d", "e")
    flow = flows.chain(a, flows.group(flows.chain(b, c), d), e)
    assert (flow.first, flow.last) == (("a",), ("e",))
    client.put_flow(flow)
    assert [job.dependencies for job in client.jobs.get_many(list("bcde"))] == [("a",), ("b",), ("a",), ("c", "d")]
    assert run(client)[-1] == "e"


def test_a_dag_names_its_results_after_its_jobs(client: Client) -> None:
    top, left, right, end = new(client, "1", "2", "3", "4")
    flow = flows.dag(
        {
            "top": top,
            "left": (left, ["top"]),
            "right": (right, ["top"]),
            "end": (end, ["left", Edge("right", "ignore")]),
        }
    )
    assert (flow.first, flow.last) == (("1",), ("4",))
    client.put_flow(flow)
    assert [one.name for one in client.jobs["4"].results().all] == ["left", "right"]


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ({}, "needs a job"),
        ({"a": ["b"]}, "a waits for b, which is not in the flow"),
        ({"a": ["a"]}, "a > a"),
        ({"x": ["c"], "a": ["c"], "b": ["a"], "c": ["b"]}, "c > b > a > c"),
    ],
)
def test_a_dag_that_cannot_be_is_refused_with_the_reason(client: Client, jobs: dict[str, list[str]], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        flows.dag({name: (client.queues["q"].new("k"), others) for name, others in jobs.items()})


def test_a_job_that_occurs_twice_is_refused(client: Client) -> None:
    (job,) = new(client, "a")
    for make in (flows.chain, flows.group):
        with pytest.raises(FlowError, match="a occurs twice"):
            make(job, job)
    with pytest.raises(FlowError, match="a occurs twice"):
        flows.dag({"x": job, "y": job})
    with pytest.raises(FlowError, match="needs a job"):
        flows.chain()


# ---- putting


def test_a_flow_of_more_than_a_thousand_is_put_in_parts_and_in_any_order(client: Client) -> None:
    flow = flows.chain(*new(client, *(f"j{n}" for n in range(2500))))
    client.put_flow(reversed(flow.jobs))
    assert len(run(client)) == 2500


def test_a_flow_that_broke_off_is_resumed_by_putting_it_again(client: Client) -> None:
    jobs = [client.queues["q"].new("k") for _ in range(1500)]
    flow = flows.chain(*jobs)
    part, rest = flows.in_parts(flows.named(flow.jobs, "f"))
    assert len(part) + len(rest) == 1500
    client.execute(ops.PutMany(part, "f-0"))  # and no more
    job = client.queues["q"].pop()
    assert job
    job.complete()
    put = client.put_flow(flow, "f")
    assert (put[0].jid, put[0].state) == ("f-1", "complete")
    assert len(run(client)) == 1499
    client.put_flow(flow, "f")
    assert run(client) == []


# ---- looking


def test_from_the_last_job_the_whole_flow_is_seen(client: Client) -> None:
    client.put_flow(flows.chain(*new(client, "a", "b", "c"), on_failure="fail"))
    run(client, "b")
    graph = client.flow("c")
    assert {jid: node.state for jid, node in graph.nodes.items()} == {"a": "complete", "b": "failed", "c": "failed"}
    assert graph.layers() == [["a"], ["b"], ["c"]]
    assert {pair: edge.on_failure for pair, edge in graph.edges.items()} == {("a", "b"): "fail", ("b", "c"): "fail"}


def test_a_walk_is_bounded_and_says_so(client: Client) -> None:
    client.put_flow(flows.chain(*new(client, *(f"j{n}" for n in range(20)))))
    graph = client.flow("j10", 5)
    assert (len(graph.nodes), graph.is_whole) == (5, False)
    assert client.flow("j10").is_whole


def test_a_job_that_is_gone_is_shown_as_gone(client: Client) -> None:
    client.config.set("jobs-history-count", 0)
    client.put_flow(flows.chain(*new(client, "a", "b")))
    job = client.queues["q"].pop()
    assert job
    job.complete()
    assert client.flow("b").nodes["a"].state == "gone"
    assert "gone" in client.flow("b").svg()


def test_the_picture_is_well_formed_and_shows_every_job_and_edge(client: Client) -> None:
    klass = """<b> & "quotes" 'too' ]--"""
    a, b, c, d = (client.queues["q"].new(klass + jid, jid=jid) for jid in "abcd")
    client.put_flow(flows.dag({"a": a, "b": (b, ["a"]), "c": (c, ["b"]), "d": (d, ["a", Edge("c", "ignore")])}))
    graph = client.flow("d")
    root = ElementTree.fromstring(graph.svg())
    name = {one: f"{{http://www.w3.org/2000/svg}}{one}" for one in ("g", "path", "title", "text")}
    assert sorted(str(one.findtext(name["title"])) for one in root.iter(name["g"])) == ["a", "b", "c", "d"]
    assert len([one for one in root.findall(name["path"]) if one.get("marker-end")]) == 4
    assert any(one.text == "c (ignore)" for one in root.iter(name["text"]))
    mermaid = graph.mermaid().splitlines()
    assert mermaid[0] == "flowchart LR"
    assert len([line for line in mermaid if re.search(r"j\d (-->|-\.->)", line)]) == 4
    assert not [line for line in mermaid if re.search("[<>&](?!br/>)", re.sub(r"-->|-\.->|<br/>", "", line))]


def test_every_state_has_a_colour() -> None:
    from qmodel.contract.lifecycle import STATES

    assert COLOURS.keys() == {*STATES, "gone"}
