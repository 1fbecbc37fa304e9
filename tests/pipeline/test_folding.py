"""A fold of the events counts what the engine counted, whole or in parts."""

from __future__ import annotations

import inspect
import itertools
import random

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.events import EVENTS
from qmodel.model.state import stats
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack, prove
from qmodel.pipeline.statistics.fold import HANDLERS, Fold, Key
from qmodel.pipeline.statistics.tallies import Sample, Tally
from tests.pipeline.histories import Watched, counted, histories

DAY = stats.DAY_MS
HOUR = 3_600_000


def folded(watched: Watched) -> Fold:
    fold = Fold()
    fold.add(watched.events)
    return fold


def exact(tally: Tally) -> list[object]:
    """Give the figures that merging does not round."""
    samples = [(one.count, +one.bins) for one in (tally.wait, tally.run)]
    return [*samples, tally.failures, tally.failed, tally.retries, +tally.groups]


def test_every_day_of_every_queue_is_the_engines_to_the_last_bit() -> None:
    compared = 0
    for watched in histories():
        fold = folded(watched)
        for (day, queue), there in watched.store.days.items():
            assert counted(there) == counted(fold.tally("queue", queue, day))
            compared += there.wait.count + there.failures + there.retries
    assert compared > 500


def test_an_event_left_out_shows_in_the_figures() -> None:
    noticed = 0
    for watched in histories():
        for place, event in enumerate(watched.events):
            kept = len(event.facts) > 1 and (stats.day_of(event.at), event.facts[1]) in watched.store.days
            if kept and event.event in ("popped", "failed", "retried", "completed"):
                fold = Fold()
                fold.add(watched.events[:place])
                fold.pass_over(Gap(event.seq, event.seq))
                fold.add(watched.events[place + 1 :])
                days = watched.store.days.items()
                assert any(counted(there) != counted(fold.tally("queue", queue, day)) for (day, queue), there in days)
                noticed += 1
                break
    assert noticed > 50


def test_parts_folded_apart_and_merged_are_the_whole() -> None:
    chooser = random.Random("parts")
    for watched in histories():
        whole = folded(watched)
        cuts = sorted({0, len(watched.events), *(chooser.randint(0, len(watched.events)) for _ in range(3))})
        parts = []
        for start, end in itertools.pairwise(cuts):
            parts.append(Fold(start, part=start > 0))
            parts[-1].add(watched.events[start:end])
        while len(parts) > 1:
            place = chooser.randrange(len(parts) - 1)
            parts[place].merge(parts.pop(place + 1))
        if parts:
            assert not parts[0].pending
            for key in whole.tallies.keys() | parts[0].tallies.keys():
                here, there = whole.tallies.get(key, Tally()), parts[0].tallies.get(key, Tally())
                assert exact(here) == exact(there), key
                for one, other in ((here.wait, there.wait), (here.run, there.run)):
                    assert one.mean == pytest.approx(other.mean, rel=1e-9)
                    assert one.squares == pytest.approx(other.squares, rel=1e-6)


def test_samples_merge_in_any_grouping() -> None:
    values = [random.Random("samples").randint(0, 10**7) for _ in range(1000)]
    whole, parts = Sample(), [Sample() for _ in range(7)]
    for place, value in enumerate(values):
        whole.add(value)
        parts[place * place % 7].add(value)
    merged = Sample()
    for part in parts:
        merged.merge(part)
    assert (merged.count, merged.bins) == (whole.count, whole.bins)
    assert merged.shown().std == pytest.approx(whole.shown().std, rel=1e-12)


def worked() -> Watched:
    """Make the events of a completed job, and of one that fails and is retried on the next day."""
    watched = Watched()
    for jid, klass in (("a", "Send"), ("b", "Scan")):
        watched.step(0, ops.Put("q", jid, klass, ""))
    watched.step(10, ops.TagAdd("b", ("big",)))
    watched.step(1000, ops.Pop("q", "w1"))
    watched.step(3000, ops.Complete("a", 4))
    watched.step(HOUR, ops.Pop("q", "w2"))
    watched.step(HOUR + 5, ops.Fail("b", watched.store.seq, "no-disk", "It is full."))
    watched.step(DAY, ops.RetryMany(group="no-disk", to="q"))
    return watched


def test_figures_are_by_klass_worker_and_tag_too() -> None:
    fold = folded(worked())
    assert fold.tally("klass", "Send", 0).run.mean == 2000
    assert fold.tally("worker", "w2", 0).groups == {"no-disk": 1}
    big = fold.tally("tag", "big", 5)
    assert (big.failures, big.failed, big.wait.count, big.run.count) == (1, 0, 1, 0)
    assert {key.by for key in fold.tallies} == {"queue", "klass", "worker", "tag"}


def test_tags_of_a_put_are_in_its_event_and_those_of_an_older_one_are_told() -> None:
    watched = Watched()
    watched.step(0, ops.Put("q", "a", "Send", "", tags=("big", "eu", "big")))
    watched.step(1, ops.Put("q", "b", "Send", ""))
    put, other = (event for event in watched.events if event.event == "put")
    assert put.named["tags"] == "big\x1feu"
    assert "tags" not in other.named
    watched.step(2, ops.Put("q", "a", "Send", ""))  # it keeps its tags, and the event says so
    assert watched.events[-1].named["tags"] == "big\x1feu"
    fold = folded(watched)
    fold.know("b", "Send", ["old"])
    for at in (8, 9):
        watched.step(at, ops.Pop("q", "w"))
    fold.add(watched.events[fold.last :])
    assert {tag: fold.tally("tag", tag, 0).wait.count for tag in ("big", "eu", "old")} == {"big": 1, "eu": 1, "old": 1}


def test_a_fold_from_the_middle_counts_older_jobs_without_a_klass() -> None:
    watched = worked()
    fold = Fold(3)
    fold.add(watched.events[3:])
    assert fold.tally("klass", "", 0).wait.count == fold.tally("queue", "q", 0).wait.count == 2


def lost_by(take: list[tuple[int, ops.Operation]], retries: int = 5) -> tuple[int, int]:
    """Give the retries that the engine and a fold count for a job that loses its lease in this way."""
    watched = Watched()
    watched.step(0, ops.Put("q", "a", "Send", "", retries=retries, timeout_ms=1000))
    watched.step(0, ops.Pop("q", "w"))
    for now, op in take:
        watched.step(now, op)
    return watched.store.days[0, "q"].retries, folded(watched).tally("queue", "q", 0).retries


def test_a_lease_past_its_timeout_is_a_retry_and_one_taken_away_is_none() -> None:
    pop = ops.Pop("q", "v")
    assert lost_by([(30_000, pop)]) == (1, 1)
    assert lost_by([(30_000, pop)], retries=0) == (0, 0)
    assert lost_by([(500, ops.Timeout(("a",))), (500, pop)]) == (0, 0)
    assert lost_by([(500, ops.Timeout(("a",))), (700, pop)]) == (0, 0)


@pytest.mark.parametrize(("seqs", "last", "gaps"), [([1, 2], 2, ()), ([2], 2, ((1, 1),)), ([], 3, ((1, 3),))])
def test_the_numbers_prove_that_none_is_missing(seqs: list[int], last: int, gaps: tuple[tuple[int, int], ...]) -> None:
    assert prove(seqs, 0, last) == gaps


def test_a_fold_takes_no_events_but_those_that_follow() -> None:
    events = worked().events
    fold = Fold()
    fold.add(events[:2])
    with pytest.raises(EventsGone, match=r"Events 3 are gone: .* give a list for the gaps\."):
        fold.add(events[3:])
    with pytest.raises(ValueError, match="sequences rise"):
        fold.add(events[:1])
    with pytest.raises(EventsGone, match="3 to 4"):
        fold.merge(Fold(4, part=True))
    assert "read from 0" in str(SequenceWentBack(9, 3))


def test_what_counts_is_read_by_its_facts_in_the_catalogues_order() -> None:
    for event, handler in HANDLERS.items():
        assert tuple(inspect.signature(handler).parameters)[2:] == EVENTS[event]
    assert Key(0, "queue", "q") < Key(1, "klass", "a")
