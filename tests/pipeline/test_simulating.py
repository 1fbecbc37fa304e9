"""The simulation agrees with queueing theory, and with itself wherever it runs."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest

from qmodel.planning.confidence import Estimate, estimate
from qmodel.planning.distributions import Law
from qmodel.planning.simulate import Pool, Setup, Simulated, Stream, erlang_c, simulate, wait_quantile

SERVICE_MS = 10_000
RUNS = range(10)


def _stream(gap_ms: float, name: str = "a", **given: object) -> Stream:
    """Jobs of a memoryless kind: arrivals and durations are exponential."""
    law = Law("exponential", SERVICE_MS)
    return Stream(name, "q", "k", Law("exponential", gap_ms), law, **given)  # type: ignore[arg-type]


def _setup(*streams: Stream, workers: int = 1, jobs: int = 3000, **given: object) -> Setup:
    pool = Pool("w", workers, ("q",))
    return Setup(streams, (pool,), **{"jobs": jobs, "warmup": 500, **given})  # type: ignore[arg-type]


def _mean_wait(found: Simulated, stream: str = "a") -> float:
    return fmean(one.wait_ms for one in found.served if one.stream == stream)


def _holds(found: Estimate, theory: float) -> bool:
    return found.low <= theory <= found.high


# ---- theory


@pytest.mark.parametrize(("workers", "load"), [(1, 0.5), (3, 0.8), (10, 0.7)])
def test_waits_are_those_of_erlang(workers: int, load: float) -> None:
    offered = workers * load
    setup = _setup(_stream(SERVICE_MS / offered), workers=workers)
    found = [simulate(setup, run) for run in RUNS]
    mean = erlang_c(workers, offered) * SERVICE_MS / (workers - offered)
    assert _holds(estimate([_mean_wait(one) for one in found]), mean)
    begun = estimate([fmean(one.wait_ms == 0 for one in one.served) for one in found])
    assert _holds(begun, 1 - erlang_c(workers, offered))
    within = wait_quantile(workers, offered, SERVICE_MS, 0.9)
    assert _holds(estimate([fmean(job.wait_ms <= within for job in one.served) for one in found]), 0.9)
    assert _holds(estimate([one.busy for one in found]), load)


def test_a_wrong_theory_is_not_held() -> None:
    setup = _setup(_stream(SERVICE_MS / 1.6), workers=2)
    found = estimate([_mean_wait(simulate(setup, run)) for run in RUNS])
    assert _holds(found, erlang_c(2, 1.6) * SERVICE_MS / 0.4)
    assert not _holds(found, erlang_c(2, 1.7) * SERVICE_MS / 0.3)


def test_a_throttle_is_as_many_workers() -> None:
    throttled = _setup(
        _stream(SERVICE_MS / 1.2, throttles=("t",)), workers=40, throttles=(("t", (("concurrency", 2),)),)
    )
    plain = _setup(_stream(SERVICE_MS / 1.2), workers=2)
    assert simulate(throttled, 1).served == simulate(plain, 1).served


def test_of_two_priorities_each_waits_as_cobham_says() -> None:
    """A. Cobham, Operations Research 2, 1954: one worker, nobody is interrupted."""
    urgent, other = _stream(SERVICE_MS / 0.3, "urgent", priority=-1), _stream(SERVICE_MS / 0.4, "other")
    found = [simulate(_setup(urgent, other, jobs=4000), run) for run in RUNS]
    remaining = 0.7 * SERVICE_MS
    assert _holds(estimate([_mean_wait(one, "urgent") for one in found]), remaining / 0.7)
    assert _holds(estimate([_mean_wait(one, "other") for one in found]), remaining / (0.7 * 0.3))


# ---- chance


def test_all_points_face_the_same_jobs() -> None:
    few, many = (simulate(_setup(_stream(8000), workers=workers, jobs=500), 3) for workers in (1, 5))
    assert [one.put_at for one in few.served] == [one.put_at for one in many.served]
    took = [[one.total_ms - one.wait_ms for one in found.served] for found in (few, many)]
    assert took[0] == took[1]
    assert all(a.wait_ms >= b.wait_ms for a, b in zip(few.served, many.served, strict=True))


def test_a_run_is_what_its_seed_and_number_say() -> None:
    setup = _setup(_stream(12_000), jobs=200)
    assert simulate(setup, 1) == simulate(setup, 1)
    assert simulate(setup, 1) != simulate(setup, 2)
    assert simulate(setup, 1) != simulate(setup._replace(seed="2"), 1)


def test_twice_the_load_is_the_same_jobs_in_half_the_time() -> None:
    one, two = (simulate(_setup(_stream(12_000), workers=50, jobs=100, load=load), 1) for load in (1.0, 2.0))
    assert all(abs(a.put_at - 2 * b.put_at) <= 2 for a, b in zip(one.served, two.served, strict=True))


# ---- what is simulated of the queue


def _steady(takes_ms: int, **given: object) -> Stream:
    law = Law("constant", takes_ms)
    return Stream("a", "q", "k", Law("constant", 10 * takes_ms), law, **given)  # type: ignore[arg-type]


def test_an_attempt_that_fails_is_tried_again_after_its_delay() -> None:
    found = simulate(_setup(_steady(1000, fails=0.5, retry_ms=300, retries=1000), workers=9, jobs=300), 1)
    again = [(one.total_ms - 1000) / 1300 for one in found.served]
    assert all(one.is_integer() for one in again)
    assert 0.8 < fmean(again) < 1.25  # the mean of tries that fail before one in two succeeds
    assert found.attempts == pytest.approx(1300 * (1 + fmean(again)), rel=0.15)


def test_a_job_without_retries_left_is_never_complete() -> None:
    found = simulate(_setup(_steady(1000, fails=0.5, retries=0), workers=9, jobs=300), 1)
    over = fmean(one.total_ms < 0 for one in found.served)
    assert 0.4 < over < 0.6


def test_the_job_of_a_worker_that_dies_waits_for_its_lease_and_the_grace() -> None:
    def totals(lease_ms: int) -> set[int]:
        setup = _setup(_steady(10, lease_ms=lease_ms), workers=9, jobs=500, options=(("grace-period", 500),))
        pool = Pool("w", 9, ("q",), crashes=0.05)
        return {one.total_ms // 100 for one in simulate(setup._replace(pools=(pool,)), 1).served}

    assert totals(1000) >= {0, 15} and max(totals(1000)) <= 31
    assert totals(9000) >= {0, 95} and not totals(9000) & set(range(1, 95))


def test_leases_that_are_not_renewed_are_lost_by_jobs_that_take_longer() -> None:
    plain = _steady(3000, lease_ms=1000, renews=False)
    setup = _setup(plain, workers=9, jobs=100, options=(("grace-period", 0),))
    found = simulate(setup, 1)
    assert found.lost > 0 and found.attempts > 2 * 1100
    renewed = simulate(setup._replace(streams=(plain._replace(renews=True),)), 1)
    assert (renewed.lost, renewed.attempts) == (0, 1100)


def test_a_rate_lets_jobs_through_when_its_window_has_moved() -> None:
    stream = Stream("a", "q", "k", Law("constant", 100), Law("constant", 10), throttles=("t",))
    setup = _setup(stream, workers=5, jobs=100, warmup=0, throttles=(("t", (("rate", 1), ("rate_ms", 250))),))
    found = simulate(setup, 1)
    begun = [one.put_at + one.wait_ms for one in found.served]
    assert {b - a for a, b in pairwise(begun)} == {250}


def test_workers_of_a_pool_take_from_its_queues_alone() -> None:
    one = _stream(5000, "one")
    two = _stream(5000, "two")._replace(queue="other")
    pools = (Pool("a", 50, ("q",)), Pool("b", 1, ("other",)))
    found = simulate(Setup((one, two), pools, jobs=400, warmup=0), 1)
    assert _mean_wait(found, "one") == 0 < _mean_wait(found, "two")


def test_a_busy_queue_starves_the_one_named_after_it_unless_they_take_turns() -> None:
    one, two = _stream(11_000, "one"), _stream(100_000, "two")._replace(queue="other")

    def waits(order: str) -> tuple[float, float]:
        pool = Pool("w", 1, ("q", "other"), order=order)
        found = simulate(Setup((one, two), (pool,), jobs=1500, warmup=0), 1)
        return _mean_wait(found, "one"), _mean_wait(found, "two")

    assert waits("ordered")[1] > 3 * waits("round-robin")[1] > 0
    assert waits("ordered")[0] < waits("round-robin")[0]


def test_erlang_has_no_answer_where_there_is_too_much_work() -> None:
    with pytest.raises(ValueError, match="waits grow without bound"):
        erlang_c(2, 2.0)
