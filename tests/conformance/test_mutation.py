"""Mutation testing: faults are planted, noticed and undone; gaps are distinguished from equivalent mutants."""

# ruff: noqa: E501  mutants stand as the files have them

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from qmodel.backends.bundle import FILES, function_name, library, read
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.conformance.graph import tight
from qmodel.conformance.graph.alphabet import Family, every_budget, every_failure, explored, families
from qmodel.conformance.graph.plan import ONE, TWO, Run, costed
from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import SERVER_CLOCK, wire
from qmodel.conformance.kit import vectors
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.model import engine
from qmodel.model.snapshot import difference, of
from qmodel.model.state import completed
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tools.mutation import bounds, distil, graph, kept, lua, model, probes, python, readers, replay, suite
from tools.mutation.__main__ import sampled
from tools.mutation.faults import PREFIX
from tools.mutation.loaded import LIMIT, Loaded, after
from tools.mutation.mutants import Mutant
from tools.mutation.record import Record
from tools.mutation.replay import Verdict
from tools.mutation.report import Result, Summary, show
from tools.mutation.triage import FILE, Triage, path
from tools.mutation.uses import uses

pytestmark = [pytest.mark.tester, pytest.mark.timeout(1800)]  # the whole suite is recorded


@pytest.fixture(scope="module")
def short() -> list[Named]:
    return suite.generated(60)


@pytest.fixture(scope="module")
def on_lua(short: list[Named]) -> replay.Recording:
    return replay.Recording(short, wire())


@pytest.fixture(scope="module")
def with_faults() -> replay.Recording:
    rows = [named for named in directed() if named.name in ("a_short_row", "a_bare_row")]
    return replay.Recording([*suite.generated(4), *rows], more=True)


@pytest.fixture(scope="module")
def on_model(short: list[Named]) -> model.Recording:
    return model.Recording(short)


# ---- mutants


def test_each_operator_makes_mutants_of_lua() -> None:
    text = "local m = {}\nfunction m.f(a, b)\n  if not a and b < 1 then\n    g(a, 'x')\n    m.t = -b + 2\n  end\n  return math.min(a, b)\nend\n"
    made = lua.mutants("m", text)
    assert {mutant.operator for mutant in made} == {
        "comparison", "arithmetic", "logic", "constant", "condition", "statement", "argument", "function",
    }  # fmt: skip
    assert "if not a and b <= 1 then" in {mutant.becomes for mutant in made}
    assert "g('x', a)" in {mutant.becomes for mutant in made}
    assert "return math.max(a, b)" in {mutant.becomes for mutant in made}
    assert "return math.min(b, a)" not in {mutant.becomes for mutant in made}


@pytest.mark.parametrize("side", ["lua", "model"])
def test_every_mutant_changes_its_file_and_no_two_are_the_same(side: str) -> None:
    maker = lua if side == "lua" else python
    total = 0
    for file in maker.MUTATED:
        text = maker.read(file)
        texts = {mutant.apply(text) for mutant in maker.mutants(file)}
        total += len(texts)
        assert text not in texts
        assert len(texts) >= 0.99 * len(maker.mutants(file))
    assert total > 2500


def test_generated_files_are_not_mutated_and_all_others_of_the_library_are() -> None:
    generated = {name for name in FILES if "./dev docs" in read(name).partition("\n")[0]}
    assert generated == {"contract/catalogue", "wire/verbs"}
    assert set(lua.MUTATED) == set(FILES) - generated


def test_lists_of_fields_are_read_by_the_bundle_alone_and_not_mutated() -> None:
    assert not any(re.search(r"(?<!\w)(keys|queues|records)\.fields\b(?! = \{)", read(file)) for file in FILES)
    assert not any("'bounds_text', 'bounds_of'" in mutant.was for mutant in lua.mutants("state/keys"))


def test_the_defaults_of_options_are_mutated() -> None:
    assert any("Option(59999, 0, YEAR" in mutant.becomes for mutant in python.mutants("contract/settings"))


def test_arguments_that_mean_the_same_when_they_are_exchanged_are_not() -> None:
    exchanged = {one.becomes for one in python.mutants("model/rules/selection") if one.operator == "argument"}
    assert any("jobs.fits(now, wanted, job)" in line for line in exchanged)
    made = [one.becomes for file in python.MUTATED for one in python.mutants(file) if one.operator == "argument"]
    assert not any("budget.fits(store, kept, units)" in line for line in made)
    assert any("budget.fits(units, store, kept)" in line for line in made)


def test_every_mutant_of_the_model_compiles() -> None:
    for file in python.MUTATED:
        for mutant in python.mutants(file)[::7]:
            compile(mutant.apply(python.read(file)), file, "exec")


def test_a_sample_is_always_the_same() -> None:
    mutants = lua.mutants("state/keys")
    chosen = sampled("lua", mutants, 20)
    assert chosen == sampled("lua", mutants, 20) != mutants[:20]
    assert len(set(chosen)) == 20 and set(chosen) <= set(mutants)


# ---- noticing


LUA = [
    ("ops/change", "statement", "job.priority = op.priority", ""),
    ("ops/pop", "constant", "return tonumber(job.remaining) == 0", "return tonumber(job.remaining) == 1"),
    ("rules/failure", "statement", "stats.failed(now, job.queue)", ""),
    (
        "rules/stages",
        "function",
        "job.ready_at = math.max(tonumber(job.ready_at), now)",
        "job.ready_at = math.min(tonumber(job.ready_at), now)",
    ),
    ("ops/lease", "statement", "workers.seen(now, job.worker)", ""),
]
MODEL = [
    ("model/ops/change", "statement", "job.priority = op.priority", "pass"),
    (
        "model/ops/pop",
        "comparison",
        'return job.remaining == 0 if most is None else int(options.get(job, "lapses") or 0) >= int(most)',
        'return job.remaining != 0 if most is None else int(options.get(job, "lapses") or 0) >= int(most)',
    ),
    ("model/rules/failure", "statement", "stats.failed(store, now, job.queue)", "pass"),
    (
        "model/rules/stages",
        "function",
        "job.ready_at = max(job.ready_at, now)",
        "job.ready_at = min(job.ready_at, now)",
    ),
    ("model/state/stats", "constant", "DAY_MS = 86_400_000", "DAY_MS = 86400001"),
    (
        "contract/settings",
        "constant",
        'PER_QUEUE: Final = ("heartbeat", "fair", "aging")',
        'PER_QUEUE: Final = ("", "fair", "aging")',
    ),
    (
        "contract/settings",
        "constant",
        '"heartbeat": Option(60_000, 0, YEAR, "ms", "How long a lease lasts without a heartbeat."),',
        '"heartbeat": Option(59999, 0, YEAR, "ms", "How long a lease lasts without a heartbeat."),',
    ),
]


@pytest.mark.parametrize("planted", LUA, ids=lambda planted: planted[0])
def test_a_mutant_of_the_lua_is_noticed(planted: tuple[str, str, str, str], on_lua: replay.Recording) -> None:
    file, operator, was, becomes = planted
    made = [m for m in lua.mutants(file) if (m.operator, m.was, m.becomes) == (operator, was, becomes)]
    assert made and all(on_lua.judge(mutant).kills for mutant in made)


@pytest.mark.parametrize("planted", MODEL, ids=lambda planted: planted[0])
def test_a_mutant_of_the_model_is_noticed(planted: tuple[str, str, str, str], on_model: model.Recording) -> None:
    file, operator, was, becomes = planted
    made = [m for m in python.mutants(file) if (m.operator, m.was, m.becomes) == (operator, was, becomes)]
    assert made and all(on_model.judge(mutant).kills for mutant in made)


def test_the_right_code_is_not_reported(on_lua: replay.Recording, on_model: model.Recording) -> None:
    assert not on_lua.judge_texts({}).kills
    assert not on_model.judge_texts({}).kills


def test_a_mutant_that_changes_operations_leaves_the_histories_as_they_are() -> None:
    recorded = model.Recording([named for named in directed() if named.name == "a_hundred_that_are_behind"])
    was = "subscriptions.assign(subscription, op)"
    swapped = [one for one in python.mutants("model/ops/publish") if one.was == was and one.operator == "argument"]
    assert recorded.judge(swapped[0]).kills and "(op, subscription)" in swapped[0].becomes
    assert not recorded.judge_texts({}).kills


def test_only_steps_that_run_the_line_are_executed(on_lua: replay.Recording) -> None:
    mutant = next(m for m in lua.mutants("ops/recover") if m.operator == "statement" and "recovered" in m.was)
    assert {on_lua.steps[index].call.step.op.spec.name for index in on_lua.steps_of(mutant)} == {"retry_many"}


def test_a_mutant_is_noticed_at_the_same_step_whether_all_steps_are_executed_or_few(on_lua: replay.Recording) -> None:
    for mutant in lua.mutants("ops/finish")[::23]:
        text = {mutant.file: mutant.apply(on_lua.texts[mutant.file])}
        assert on_lua.judge(mutant).kills[:1] == on_lua.judge_texts(text).kills[:1], str(mutant)


CONSTANTS = [
    ("state/throttles", "NEVER"),
    ("rules/failure", "SWEEP"),
    ("state/ttl", "PENDING"),
    ("rules/admission", "NONE"),
]


@pytest.mark.parametrize(("file", "name"), CONSTANTS)
def test_a_constant_changes_only_steps_that_run_a_line_that_names_it(
    file: str, name: str, on_lua: replay.Recording
) -> None:
    made = [m for m in lua.mutants(file) if re.match(rf"(local |\w+\.){name} =", m.was)]
    assert made
    for mutant in made:
        assert len(on_lua.steps_of(mutant)) < len(on_lua.steps)
        everything = on_lua.judge(mutant, steps=range(len(on_lua.steps)))
        assert on_lua.judge(mutant).kills == everything.kills, str(mutant)


def test_a_constant_of_the_model_is_tried_on_histories_that_run_a_line_that_reads_it(on_model: model.Recording) -> None:
    made = [mutant for mutant in python.mutants("model/state/subjects") if re.match(r"(ONE|MORE)\b.* = ", mutant.was)]
    assert made
    for mutant in made:
        read_at = readers.lines(mutant.file, mutant.line) or set()
        assert read_at and {file for file, _ in read_at} <= set(readers.MODEL)
        assert on_model.judge(mutant).kills == on_model.judge(mutant, steps=on_model.all_steps).kills, str(mutant)
    assert readers.lines("contract/settings", 60) is None


def test_a_mutant_of_the_model_is_noticed_wherever_states_are_compared_and_whatever_comes_first(
    on_model: model.Recording,
) -> None:
    judged = {}
    for mutant in python.mutants("model/ops/finish")[::23]:
        everywhere = on_model.judge(mutant, steps=on_model.all_steps)
        judged[mutant] = bool(everywhere.kills)
        assert bool(on_model.judge(mutant).kills) == judged[mutant], str(mutant)
    for mutant, noticed in judged.items():  # the histories that noticed the others come first now
        assert bool(on_model.judge(mutant).kills) == noticed, str(mutant)
    assert {True, False} == set(judged.values())


def test_a_history_that_noticed_another_mutant_of_the_file_is_executed_first(on_model: model.Recording) -> None:
    one, other = [one for one in python.mutants("model/state/tags") if on_model.judge(one).kills][-2:]
    steps = on_model.steps_of(other)
    noticed = max(n for n in steps if on_model.first[n] <= on_model.judge(one).kills[0].step)
    order = on_model._ordered(steps, other.file)
    assert order[0] == noticed and sorted(order) == sorted(steps)


@pytest.mark.parametrize("file", ["model/state/cascade", "model/ops/finish", "model/state/options"])
def test_planting_one_function_changes_what_planting_its_file_does(file: str) -> None:
    text = python.read(file)
    for mutant in python.mutants(file)[::5]:
        wrong = mutant.apply(text)
        whole = [*model._constants(model.module_of(file), wrong, f"qmodel/{file}.py")]
        whole += model.functions(model.module_of(file), compile(wrong, f"{python.ROOT / file}.py", "exec"))
        if model._definition(file, wrong) is not None:  # those after it may stand on other lines
            whole = [one for one in whole if one.name == "__code__"][:1]
        found = model.changes(file, wrong)
        assert [(one.holder, one.name) for one in found] == [(one.holder, one.name) for one in whole], str(mutant)


def test_constants_that_are_assigned_together_are_exchanged() -> None:
    right, text = "PART, MOST = 16, 64\n", python.read("model/state/completed")
    assert right in text
    with model.planted("model/state/completed", text.replace(right, "PART, MOST = 16, 65\n")) as wrong:
        assert (wrong, completed.PART, completed.MOST) == ("", 16, 65)
    assert completed.MOST == 64


def test_a_value_with_a_name_that_cannot_be_followed_may_change_every_step() -> None:
    text = (
        "local m = {}\nlocal ONE, two = 1, 2\nlocal THREE = 3\nm.four = THREE\nfunction m.f()\n  return m.four\nend\n"
    )
    at = {name: text.index(f"{name} =") for name in ("ONE, two", "THREE", "m.four")}
    assert uses({"m": text}, "m", at["ONE, two"], at["ONE, two"] + 3) is None
    assert uses({"m": text}, "m", at["THREE"] + 8, at["THREE"] + 9) == {("m", 6)}
    assert uses({"m": text, "n": "function g()\n  return (x.four)\nend\n"}, "m", at["m.four"], at["m.four"] + 1) == {
        ("m", 6),
        ("n", 2),
    }


def test_a_mutant_in_parts_does_what_it_does_in_the_whole_library(on_lua: replay.Recording) -> None:
    made = [mutant for file in lua.MUTATED for mutant in lua.mutants(file) if on_lua.steps_of(mutant)]
    for mutant in sampled("lua", made, 60):
        index = on_lua.steps_of(mutant)[0]
        first = on_lua.steps[index].first
        texts = {**on_lua.texts, mutant.file: mutant.apply(on_lua.texts[mutant.file])}
        assert _seen_in_parts(on_lua, mutant, first, index) == _seen_whole(on_lua, texts, first, index), str(mutant)


Seen = list[tuple[str, int, set[bytes], dict[bytes, tuple[str, object]]]] | None
"""The reply to each step, its commands, the keys that it wrote, and all keys after it; None if nothing is loaded."""


def _seen_in_parts(recording: replay.Recording, mutant: Mutant, first: int, last: int) -> Seen:
    loaded = recording.loaded
    try:
        loaded.parts.use(mutant.file, mutant.apply(recording.texts[mutant.file]))
        loaded.parts.begin()
    except ReplyError:
        return None
    return _seen(recording, loaded.host, first, last)


def _seen_whole(recording: replay.Recording, texts: dict[str, str], first: int, last: int) -> Seen:
    host = LuaHost(lambda: SERVER_CLOCK, limit=LIMIT)
    try:
        host.load(library(texts))
    except ReplyError:
        return None
    return _seen(recording, host, first, last)


def _seen(recording: replay.Recording, host: LuaHost, first: int, last: int) -> Seen:
    found = list[tuple[str, int, set[bytes], dict[bytes, tuple[str, object]]]]()
    host.keyspace.load(recording.steps[first].before)
    for recorded in recording.steps[first : last + 1]:
        host.keyspace.touched.clear()
        host.keyspace.calls.clear()
        try:
            name = function_name(recorded.call.step.op.spec.name)
            reply: object = host.fcall(name, [PREFIX], recorded.call.args)
        except ReplyError as error:
            reply = str(error)
            if "instruction limit" in reply:  # a part of a library has fewer instructions
                return [*found, (reply, 0, set(), {})]
        found.append((repr(reply), host.keyspace.calls.total(), set(host.keyspace.touched), host.keyspace.dump()))
    return found


def test_a_mutant_is_noticed_whether_steps_of_other_ways_come_first_or_not(on_lua: replay.Recording) -> None:
    made = lua.mutants("ops/lease")[::9]
    for mutant in made:
        ordered = on_lua.judge(mutant, limit=replay.NO_LIMIT)
        assert bool(ordered.kills) == bool(on_lua.judge(mutant).kills), str(mutant)
    assert sum(on_lua.judge(m, limit=1000).steps for m in made) < sum(on_lua.judge(m).steps for m in made)


def test_another_number_of_commands_is_noticed_where_it_is_pinned() -> None:
    text = read("ops/bare")
    one = "  local seq = store.seq + 1\n"
    longer = {"ops/bare": text.replace(one, f"  redis.call('TYPE', keys.counters)\n{one}", 1)}
    row = [named for named in directed() if named.name == "a_row_of_jobs_without_options"]
    assert not replay.Recording(row).judge_texts(longer).kills
    pinned = replay.Recording(row, pinned={row[0].name})
    assert pinned.judge_texts(longer).kills[0].by == "commands"
    as_verbs = {"ops/plain": read("ops/plain").replace("  put = plain_put.put, ", "  ")}
    assert pinned.judge_texts(as_verbs).kills[0].by in ("commands", "ways")
    never_bare = {"ops/bare": text.replace("  put = bare.put, ", "  ")}
    assert never_bare["ops/bare"] != text
    assert {kill.by for kill in pinned.judge_texts(never_bare, most=9).kills} <= {"commands", "ways"}


def test_what_repairs_failed_writes_and_wrong_keys_is_tried() -> None:
    row = [named for named in directed() if named.name == "a_short_row"]
    recording = replay.Recording([*suite.generated(2), *row], pinned={"gathered a_short_row"}, more=True)
    assert not recording.judge_texts({}, most=9).kills
    kinds = {name.split()[0] for name in recording.names}
    scenes = {
        "gathered",
        "denied",
        "spoiled",
        "damaged",
        "tight",
        "live",
        "elsewhere",
        "lost",
        "in",
    }  # "in" is "in turns"
    assert kinds == {"mutation", "a_short_row", *scenes}
    assert [recording.names[number] for number in recording.pinned] == ["gathered a_short_row"]
    for file in ("state/repair", "state/writes", "wire/calls"):
        made = lua.mutants(file)[::31]
        assert sum(bool(recording.judge(mutant, limit=replay.WORK).kills) for mutant in made) > len(made) / 4, file


def test_a_budget_that_is_one_off_is_noticed_where_it_is_small(with_faults: replay.Recording) -> None:
    text = read("state/budget")
    wrong = text.replace("budget.take(units_of(found[i]), 0", "budget.take(units_of(found[i]) + 1, 0", 1)
    assert wrong != text
    kills = with_faults.judge_texts({"state/budget": wrong}, most=99).kills
    assert any(with_faults.names[with_faults.steps[kill.step].history].startswith("tight") for kill in kills)


@pytest.mark.parametrize(
    ("scenes", "file", "right", "wrong"),
    [
        ("denied", "state/writes", "  undoings = 0\n  return intent.try_all(commands)", "  undoings = 0\n  return {}"),
        ("denied", "state/writes", "    if later[at + 1] then\n      commands", "    if false then\n      commands"),
        ("spoiled", "state/repair", "if store.seq < top and not left[1] then", "if false then"),
        ("live", "state/epochs", "local last = math.max(", "local last = math.min("),
        ("denied a_bare_row", "ops/bare", "if one ~= event or two ~= waits or", "if two ~= waits or"),
        (
            "elsewhere",
            "ops/bare",
            "if found[1] ~= store.known_counters or found[2] ~= store.config or not text then",
            "if not text then",
        ),
    ],
    ids=[
        "nothing is undone",
        "nothing goes on",
        "old counters stay",
        "an epoch is begun twice",
        "an event of a bare pop is lost",
        "counters of another server are not met",
    ],
)
def test_a_fault_of_repairs_is_noticed_in_the_scenes_for_it(
    scenes: str, file: str, right: str, wrong: str, with_faults: replay.Recording
) -> None:
    text = read(file)
    assert text.count(right) == 1
    kills = with_faults.judge_texts({file: text.replace(right, wrong)}, most=99).kills
    assert any(with_faults.names[with_faults.steps[kill.step].history].startswith(scenes) for kill in kills)


def test_a_mutant_that_loops_for_ever_is_noticed(on_lua: replay.Recording) -> None:
    text = read("ops/read").replace("local jids = queues.order", "while true do end\n  local jids = queues.order", 1)
    assert on_lua.judge_texts({"ops/read": text}).kills[0].by == "limit"


def test_a_difference_in_bytes_only_is_no_kill_but_is_reported(short: list[Named]) -> None:
    text = read("state/failures").replace("store.add(keys.failures, 0,", "store.add(keys.failures, 7,")
    assert text != read("state/failures")
    verdict = replay.Recording(short).judge_texts({"state/failures": text})
    assert not verdict.kills and "ql:failures" in verdict.silent


def test_histories_of_shapes_are_kept_for_the_code_and_the_family_that_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Named("graph metadata 1x1 0", [Step(7, ops.Put("q", "a", "k", "", throttles=("t",)))])]
    one, other = [Run(families()["metadata"], ONE)], [Run(families()["metadata"], TWO)]
    assert kept.histories(one, lambda: found, tmp_path) == found
    assert kept.histories(one, lambda: [], tmp_path) == found
    assert kept.histories(other, lambda: [], tmp_path) == []
    monkeypatch.setattr(kept, "_code", lambda: "changed")
    assert kept.histories(one, lambda: [], tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_the_digest_of_kept_histories_covers_all_that_a_search_imports() -> None:
    code = "import sys, qmodel.conformance.graph.plan; [print(m.__file__) for n, m in sys.modules.items() if n[:6] == 'qmodel']"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    covered = {path.resolve() for pattern in kept.CODE for path in kept.ROOT.glob(pattern)}
    left = {path for path in map(Path, said.splitlines()) if path.resolve() not in covered}
    assert left and {path.parent.name for path in left} == {"laws"}


def test_histories_that_json_does_not_hold_are_not_kept(tmp_path: Path) -> None:
    found = [Named("graph metadata 1x1 0", [Step(7, ops.Put("q", "a", "k", "", tags=["list"]))])]  # type: ignore[arg-type]
    run = [Run(families()["metadata"], ONE)]
    assert kept.histories(run, lambda: found, tmp_path) == found
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("side", ["lua", "model"])
def test_the_graph_looks_for_mutants_in_the_families_that_run_their_lines(side: str) -> None:
    judge = graph.Graph(side, [*suite.shapes_of("metadata"), *suite.shapes_of("refusals")])
    found = list(judge.runs([one for one in _of_metadata(side) if one.operator == "statement"]))
    found = found[len(costed()) if side == "lua" else 0 :]
    assert [(run.family.name, run.scope) for run in found[:2]] == [("metadata/each", ONE), ("metadata/each", TWO)]
    assert not any(run.family.name.split("/")[0] == "refusals" for run in found)


@pytest.mark.parametrize("side", ["lua", "model"])
def test_without_histories_the_graph_looks_for_mutants_in_all_families(side: str) -> None:
    found = list(graph.Graph(side, [], 500).runs([]))
    assert {run.family.name.split("/")[0] for run in found} == explored().keys()
    pinned = list(costed()) if side == "lua" else []
    assert found[: len(pinned)] == pinned
    assert all(run.family.fails or (run.strays and run.edges == 500) for run in found[len(pinned) :])
    assert {run.scope for run in found} >= {ONE, TWO}


@pytest.mark.parametrize("side", ["lua", "model"])
@pytest.mark.parametrize("family", [families()["tags"], every_budget("tags")], ids=["usual budget", "each budget"])
def test_a_search_of_many_mutants_notices_what_one_of_each_does(side: str, family: Family) -> None:
    judge = graph.Graph(side, suite.shapes_of("metadata")[:1])
    run, made = Run(family, ONE, 250), lua.mutants("ops/tag") if side == "lua" else python.mutants("model/ops/tag")
    left = judge.searched(run, mutants := made[::7]).left
    assert left and len(left) < len(mutants)
    for mutant in mutants:
        assert judge.finds(mutant, run) == (mutant not in left), mutant


def test_a_mutant_that_only_costs_more_is_noticed_where_the_table_has_the_search() -> None:
    judge, run = graph.Graph("lua", []), next(one for one in costed() if one.family.name == "plain_ways")
    becomes = "and (request ~= '' or arguments.is_id(request, 64))"
    made = [one for one in lua.mutants("ops/plain_put") if one.becomes == becomes]
    watched = judge.searched(run, made)
    assert made == list(watched.left) == list(watched.dearer)
    assert judge._noticed(run, made, Counter()) == made
    assert judge._noticed(run._replace(edges=run.edges - 1), made, Counter()) == []


def test_mutants_of_what_a_row_does_with_a_failed_command_are_noticed_where_commands_fail() -> None:
    judge, family = graph.Graph("lua", []), every_failure("rows")
    family = family._replace(letters=tuple(one for one in family.letters if one.text.startswith("Put(")))
    made = [one for one in lua.mutants("ops/bare") if one.was == "if one ~= event or two ~= 1 then"]
    left = judge.searched(Run(family._replace(fails=False), ONE, 100), made).left
    assert len(judge.searched(Run(family, ONE, 100), made).left) < len(left)


def _of_metadata(side: str) -> list[Mutant]:
    return (lua if side == "lua" else python).mutants("state/metadata" if side == "lua" else "model/state/metadata")


@pytest.mark.parametrize("side", ["lua", "model"])
def test_lines_that_no_history_of_a_shape_runs_are_listed(side: str) -> None:
    judge = graph.Graph(side, suite.shapes_of("metadata"))
    made = (lua if side == "lua" else python).mutants("ops/annotate" if side == "lua" else "model/ops/annotate")
    found = judge.unrun(made)
    assert any("LIMIT_REACHED" in line for line in found)
    assert len(found) < len({(one.file, one.line, one.was) for one in made})


@pytest.mark.parametrize("side", ["lua", "model"])
def test_what_only_servers_call_is_told_apart(side: str) -> None:
    made = (lua if side == "lua" else python).mutants("state/epochs" if side == "lua" else "model/state/epochs")
    left = {one.was for one in made if graph.is_of_servers(one)}
    assert any("DIGITS" in line for line in left) and not any("FORKED" in line for line in left)
    assert not any(
        map(graph.is_of_servers, (lua if side == "lua" else python).mutants(made[0].file.replace("epochs", "tags")))
    )


@pytest.mark.parametrize(
    ("side", "file", "becomes", "bound"),
    [
        ("model", "model/state/tags", "if len({*some, *more}) >= MOST:", "MOST"),
        ("model", "model/state/tags", "if len({*some, *more}) <= MOST:", ""),
        ("model", "model/state/dependencies", "if False:", "MOST"),
        ("model", "model/ops/recur", "while not run.free:", "MOST"),
        ("model", "model/ops/recur", "while tries < MOST:", ""),
        ("model", "model/ops/recur", "while False:", ""),
        ("model", "model/state/results", "if more:", ""),
        ("model", "model/ops/finish", "SWEEP = 101", "SWEEP"),
        ("model", "model/rules/failure", "SWEEP = 4", ""),
        ("model", "model/state/pauses", "MOST = 11", ""),
        ("model", "model/state/results", 'raise refuse("", jid)', "MOST"),
        ("model", "model/ops/remove", "if job.dependents or False:", ""),
        ("lua", "state/metadata", "return writes.fetch('HLEN', keys.metadata(klass)) > metadata.MOST", "metadata.MOST"),
        ("lua", "state/results", "if false then", "TEXTS"),
        ("lua", "state/dependencies", "if waited_for + more[other] >= catalogue.most then", "catalogue.most"),
        ("lua", "state/keys", "local MOST = 201 -- the most cached keys", ""),
    ],
)
def test_changes_of_bounds_that_are_out_of_reach_are_told_apart(side: str, file: str, becomes: str, bound: str) -> None:
    made = lua.mutants(file, read(file)) if side == "lua" else python.mutants(file)
    found = {bounds.of(mutant) for mutant in made if mutant.becomes == becomes}
    assert bound in found if bound else found <= {""}


def test_a_history_that_reaches_half_of_a_bound_is_noticed() -> None:
    tagged = ops.Put("q", "A", "k", "", tags=tuple(map(str, range(600))))
    many = model.Recording([Named("tags", [Step(1, tagged), Step(2, ops.TagAdd("A", ("x",)))])])
    assert bounds.reached(many)
    with bounds.halved() as found:
        assert {"model/state/tags.MOST", "model/ops/finish.SWEEP", "model/state/results.TEXTS"} <= set(found)
    assert not many.judge_texts({}).kills


def test_events_are_compared_as_clients_see_them_and_not_how_many_old_ones_are_left(on_lua: replay.Recording) -> None:
    told = [one for one in on_lua.steps if replay.EVENTS in one.written and replay.EVENTS in one.before]
    loaded = Loaded(on_lua.texts)
    loaded.set({replay.EVENTS: deepcopy(told[0].written[replay.EVENTS])})
    stream = loaded.content(replay.EVENTS)
    del stream.entries[0]
    assert not replay._events_differ(loaded, told[0])
    at, (field, text) = stream.entries[-1]
    stream.entries[-1] = at, (field, text + b"x")
    assert replay._events_differ(loaded, told[0])


@pytest.fixture
def verdicts(tmp_path: Path, short: list[Named], on_model: model.Recording) -> Callable[[int, str], Record]:
    """Opens a record of verdicts for the first histories of the suite, with something behind the text of each file."""
    digests = on_model.digests

    def opened(histories: int, behind: str = "") -> Record:
        path = str(tmp_path / "verdicts.jsonl")
        return Record(path, digests[:histories], lambda kill: digests[on_model.number(kill)], lambda _: behind)

    return opened


def test_a_verdict_that_was_recorded_stands_while_the_file_and_the_history_are_the_same(
    verdicts: Callable[..., Record], on_model: model.Recording
) -> None:
    before, whole = verdicts(len(on_model.suite)), len(on_model.suite)
    judged = {mutant: on_model.judge(mutant).kills for mutant in python.mutants("model/state/tags")}
    for mutant, kills in judged.items():
        assert before.result(mutant) is None
        before.add(Result(mutant, Verdict(kills), 1.0))
    for mutant, kills in judged.items():
        found = verdicts(whole).result(mutant)
        assert found is not None and [one.by for one in found.verdict.kills] == [one.by for one in kills]
        assert verdicts(whole, "changed").result(mutant) is None
        assert (verdicts(0).result(mutant) is None) == bool(kills)


def test_a_mutant_that_survived_is_tried_on_new_histories_only(
    verdicts: Callable[..., Record], on_model: model.Recording
) -> None:
    mutant = next(one for one in python.mutants("model/ops/tag") if on_model.judge(one).kills)
    steps = on_model.steps_of(mutant)
    verdicts(20).add(Result(mutant, Verdict(steps=7), 2.0))
    assert verdicts(20).result(mutant) is not None is not verdicts(10).result(mutant)
    again = verdicts(len(on_model.suite))
    assert again.result(mutant) is None
    assert on_model.steps_of(mutant, again.passed(mutant)) == {n: found for n, found in steps.items() if n >= 20}
    result = again.add(Result(mutant, Verdict(steps=5), 1.0))
    assert (result.verdict.steps, result.seconds) == (12, 3.0)


def _of_budget(was: str) -> Mutant:
    return next(one for one in python.mutants("model/state/budget") if one.was == was and one.operator == "constant")


def test_a_unit_more_is_noticed_by_steps_with_every_budget_that_is_too_small(
    short: list[Named], on_model: model.Recording
) -> None:
    recorded, mutant = model.Recording(short[:9], list(tight.of(short))), _of_budget("units = 2")
    assert not on_model.judge(mutant).kills
    (kill,) = recorded.judge(mutant).kills
    assert kill.by == "budget" and recorded.number(kill) >= 9
    assert not recorded.judge(mutant, steps=recorded.steps_of(mutant, recorded.digests[9:])).kills
    assert not recorded.judge_texts({}).kills


def test_a_unit_more_is_noticed_by_histories_within_a_small_budget(
    short: list[Named], on_model: model.Recording
) -> None:
    recorded, mutant = model.Recording(short[:9], small=[(8, one) for one in short]), _of_budget("units = 2")
    (kill,) = recorded.judge(mutant).kills
    assert kill.by != "budget" and recorded.number(kill) >= 9
    assert not set(recorded.digests[9:]) & set(on_model.digests)
    assert recorded.digests[:9] == on_model.digests[:9]


def test_planting_in_the_model_is_undone() -> None:
    history = directed()[0].steps
    right = [engine.step(store, *step) for store in [Store()] for step in history]
    text = python.read("model/state/jobs").replace('"LOCK_LOST"', '"JOB_NOT_FOUND"')
    with model.planted("model/state/jobs", text) as wrong:
        assert wrong == ""
        assert [engine.step(store, *step) for store in [Store()] for step in history] != right
    assert [engine.step(store, *step) for store in [Store()] for step in history] == right


# ---- the directed histories


@pytest.mark.parametrize("named", [n for n in directed() if len(n.steps) < 300], ids=lambda named: named.name)
def test_the_lua_agrees_with_the_model_on_a_directed_history(named: Named) -> None:
    recording = replay.Recording([named])
    store = Store()
    executed = {id(recorded.call.step): recorded for recorded in recording.steps}
    for step in named.steps:
        outcome = engine.step(store, *step)
        recorded = executed.get(id(step))
        if recorded is not None:
            assert codec.decode(step.op, recorded.reply) == outcome
    last = recording.steps[-1]
    assert difference(of(store), replay.snapshot(after(last.before, last.written))) == []


def test_calls_written_by_hand_get_the_expected_replies() -> None:
    assert len(replay.Recording([], wire()).steps) == len(wire()) > 80


# ---- probes


def test_a_mutant_that_any_step_notices_is_noticed_where_its_values_differ(on_lua: replay.Recording) -> None:
    made = [one for file in ("rules/backoff", "state/tags", "ops/bare") for one in lua.mutants(file)][::7]
    found = probes.differing(on_lua, made)
    assert len(found) > 0.7 * len(made)
    steps = {one: on_lua.with_next(of) for one, of in found.items()}
    noticed = {one for one in found if on_lua.judge(one).kills}
    assert noticed == {one for one, of in steps.items() if of and on_lua.judge(one, steps=of).kills}
    assert sum(map(len, steps.values())) < 0.7 * sum(len(on_lua.steps_of(one)) for one in found)


TEXT = """local m = {}
local MOST = 7
local some = 1
function m.f(a, b)
  some = a
  local c = a > MOST and g(b)
  m.x, m.y = a, some
  return string.sub(b, a, MOST), m.g(a, b)
end
"""


@pytest.mark.parametrize(
    ("becomes", "span", "other", "way"),
    [
        ("local MOST = 8", "a > MOST", "a > (8)", "values"),
        ("local MOST = 8", "string.sub(b, a, MOST)", "string.sub(b, a, (8))", "values"),
        ("local c = a >= MOST and g(b)", "a > MOST", "a >= MOST", "values"),
        ("local c = g(b)", "a > MOST", "false", "when"),
        ("local c = a > MOST", "a > MOST", "true", "when"),
        ("return string.sub(a, b, MOST), m.g(a, b)", "string.sub(b, a, MOST)", "string.sub(a, b, MOST)", "values"),
        ("return string.sub(b, a, MOST), m.g(b, a)", "a, b", "b, a", "values"),
        ("", "a, some", "m.x, m.y", "values"),
    ],
)
def test_a_probe_stands_at_the_largest_expression_without_effect(becomes: str, span: str, other: str, way: str) -> None:
    texts = {"m": TEXT}
    made = [one for one in lua.mutants("m", TEXT) if one.becomes == becomes and one.was != "some = a"]
    found = [one for mutant in made for one in probes.probes_of(probes.Pure(texts), mutant, texts).get("m", ())]
    assert (span, other, way) in [(TEXT[slice(*one.span)], one.other, one.way) for one in found]


@pytest.mark.parametrize("becomes", ["local some = 2", "local c = a > MOST or g(b)"])
def test_names_that_are_assigned_again_and_calls_with_effects_have_no_probe(becomes: str) -> None:
    texts = {"m": TEXT}
    (mutant,) = [one for one in lua.mutants("m", TEXT) if one.becomes == becomes]
    assert not probes.probes_of(probes.Pure(texts), mutant, texts)


# ---- triage


def test_every_triaged_mutant_has_a_reason_and_an_existing_line() -> None:
    triage = Triage()
    made = [m for maker in (lua, python) for file in maker.MUTATED for m in maker.mutants(file)]
    for mutant in made:
        triage.entry(mutant)
    assert all(len(entry.reason) > 20 and entry.reason.endswith(".") for entry in triage.entries)
    assert [f"{entry.file}: {entry.line}" for entry in triage.stale({path(m) for m in made})] == []
    assert FILE.is_file()


def test_an_entry_that_matches_no_mutant_is_stale() -> None:
    triage = Triage('[[equivalent]]\nfile = "lua/state/keys.lua"\noperator = "*"\nline = "gone"\nreason = "None."\n')
    assert [triage.entry(mutant) for mutant in lua.mutants("state/keys")] == [None] * len(lua.mutants("state/keys"))
    assert len(triage.stale({"lua/state/keys.lua"})) == 1


def test_the_report_names_survivors_by_line() -> None:
    mutant = lua.mutants("state/keys")[0]
    summary = Summary("lua")
    summary.add(Result(mutant, replay.Verdict([replay.Kill(9, "reply")], steps=10), 0.1), False)
    summary.add(Result(mutant, replay.Verdict(steps=3), 0.1), False)
    assert "50.00 % of the others killed, 1 survived" in show(summary)
    assert f"lua/state/keys.lua:{mutant.line}" in show(summary)
    assert "geometric mean 10" in show(summary)


# ---- vectors


VECTORS = vectors.loads(distil.FILE.read_text(encoding="utf-8"))


def test_the_vectors_state_their_power() -> None:
    about, found = VECTORS
    assert about["operations"] == sum(len(vector.steps) for vector in found) < 6500
    assert about["power"]["held_out_killed_by_state_percent"] > 90


def test_the_model_does_what_the_vectors_say() -> None:
    for vector in VECTORS[1]:
        store = Store()
        for step, expected in zip(vector.steps, vector.outcomes, strict=True):
            found = json.loads(json.dumps(vectors.outcome(engine.step(store, *step))))
            assert found == expected, f"{vector.id}: {step}"


def _has_a_form(step: Step) -> bool:
    """Whether a step can be encoded: steps with arguments of wrong types are refused before."""
    try:
        return bool(codec.encode(step.op, step.now))
    except codec.Unencodable:
        return False


def test_the_lua_does_what_the_vectors_say() -> None:
    recording = replay.Recording([Named(vector.id, list(vector.steps)) for vector in VECTORS[1]])
    told = [pair for vector in VECTORS[1] for pair in zip(vector.steps, vector.outcomes, strict=True)]
    outcomes = [outcome for step, outcome in told if _has_a_form(step)]
    assert len(recording.steps) == len(outcomes)
    for recorded, expected in zip(recording.steps, outcomes, strict=True):
        found = vectors.outcome(codec.decode(recorded.call.step.op, recorded.reply))
        assert json.loads(json.dumps(found)) == expected


def test_vectors_survive_being_written_and_read() -> None:
    found = distil.vectors(suite.generated(3), [(0, 20), (2, 9)])
    about, again = vectors.loads(vectors.dumps(found, "core", power={"a": 1}))
    assert about["power"] == {"a": 1}
    assert about["vectors"] == 2
    assert [list(vector.steps) for vector in again] == [vector.steps for vector in found]


def test_only_histories_short_enough_to_be_chosen_are_tried(short: list[Named]) -> None:
    whole = {
        named.name: [step for step in named.steps if step.op.spec.name != "journal"] for named in [*short, *directed()]
    }
    tried = distil.candidates([*short, *directed()])
    assert len(tried) == len(whole) and sum(len(named.steps) for named in tried) < 27_000
    assert all(named.steps == whole[named.name][: len(named.steps)] for named in tried)


def test_a_mutant_noticed_once_still_counts_when_noticed_in_another_way() -> None:
    named = suite.generated(3)
    kills = {"a": [(0, 1), (1, 3)], "b": [(0, 2)]}
    assert distil.choose(named, kills, 17) == [(0, 3)]
    assert distil.choose(named, kills, 19) == [(0, 3), (1, 4)]


def test_what_vectors_notice_already_counts_less() -> None:
    named = suite.generated(3)
    kills: distil.Kills = {"a": [(0, 1)], "b": [(1, 1)]}
    assert distil.choose(named, kills, 17, {"a": [(0, 9)]}) == [(1, 2)]
    assert distil.choose(named, kills, 17, {"b": [(0, 9)]}) == [(0, 2)]


def test_lines_count_for_each_operation_that_runs_them(short: list[Named]) -> None:
    recording = replay.Recording(short[:3])
    found = distil.lines(recording)
    assert {name.split()[2] for name in found} == {one.call.step.op.spec.name for one in recording.steps}
    for name, places in list(found.items())[:50]:
        history, at = places[0]
        first = recording.first[history] + at
        assert recording.steps[first].call.step.op.spec.name == name.split()[2]
        assert first in recording.running[int(name.split()[1])]


def test_a_mutant_that_vectors_notice_is_tried_on_nothing_else(short: list[Named]) -> None:
    one, other = replay.Recording(short[:2]), replay.Recording(short[2:5])
    mutant = next(made for made in lua.mutants("state/keys") if one.judge(made).kills)
    assert distil.judge(one, other, mutant).kills[0].step == distil.THERE
    assert distil.judge(replay.Recording([]), one, mutant).kills[0].step >= 0


def test_a_vector_that_another_one_begins_with_is_left_out() -> None:
    steps = suite.generated(1)[0].steps
    named = [Named("mutation 1", steps[:9]), Named("mutation 2", steps[:9]), Named("mutation 3", steps)]
    assert len(distil.vectors(named, [(0, 5), (1, 5)])) == 1
    (found,) = distil.vectors(named, [(0, 5), (1, 6), (2, 20)])
    assert list(found.steps[:20]) == list(steps[:20])


def test_ids_of_drawn_histories_follow_from_their_steps() -> None:
    steps = suite.generated(1)[0].steps
    assert distil._id("mutation 7", steps) == distil._id("mutation 8", steps) != distil._id("mutation 7", steps[1:])
    assert distil._id("a lease", steps) == "a-lease"


def test_the_choice_takes_what_notices_most_for_its_price() -> None:
    named = suite.generated(3)
    kills = {"a": [(0, 50), (1, 3)], "b": [(1, 4)], "c": [(0, 50)], "d": [(2, 2)]}
    assert distil.choose(named, kills, 20) == [(1, 5)]
    assert {history for history, _ in distil.choose(named, kills, 10_000)} == {0, 1, 2}
