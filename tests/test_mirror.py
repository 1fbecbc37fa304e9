"""The model and the Lua library mirror each other: file by file, function by function, word by word.

What differs on purpose is listed here, with its reason. A difference that is not listed fails, and so does one that is
listed and no longer there.
"""

from __future__ import annotations

import re

import pytest

from qmodel.backends import bundle
from qmodel.contract.lifecycle import STATES
from qmodel.contract.operations import CATALOGUE
from qmodel.dialects.qless import commands as commands_module
from qmodel.dialects.qless.documents import DOCUMENTS
from qmodel.model import engine
from qmodel.model.state import state_index
from tests.mirror import ROOT, Function, lua_functions, python_functions, text_of, without_comments
from tools import lua_catalogue

OPS, RULES, STATE = (
    sorted(path.stem for path in (ROOT / "qmodel/model" / folder).glob("[a-z]*.py"))
    for folder in ("ops", "rules", "state")
)

LUA_FILES_ALONE = {
    "ops/bare": "what ops/plain does in a row of plain operations, at once; tests/property/test_plain.py compares both",
    "ops/plain": "what the verbs do in the plain case, at once; tests/property/test_plain.py compares both",
    "ops/plain_complete": "likewise",
    "ops/plain_pop": "likewise",
    "ops/plain_put": "likewise",
    "state/intent": "a step of the model cannot fail in its middle",
    "state/keys": "the model has no keys",
    "state/plain_journal": "what the verbs record of a plain call, at once; tests/property/test_plain.py compares both",
    "state/plain_options": "the model's jobs are objects",
    "state/plain_records": "the model's jobs are objects",
    "state/repair": "the model's state is never damaged",
    "state/writes": "a step of the model cannot fail in its middle",
}

IN_LUA_ALONE = {
    "budget.reach": "the model need not read its jobs",
    "cascade.flush": "within an operation the cascade is a list of Lua's",
    "completed.learn": "the bound before which nothing can be past keeping is a cache of Lua's",
    "completed.beyond": "the bound before which nothing can be past keeping is a cache of Lua's",
    "completed.is_known_early": "the bound before which nothing can be past keeping is a cache of Lua's",
    "completed.room": "the bound before which nothing can be past keeping is a cache of Lua's",
    "completed.recheck": "the bound before which nothing can be past keeping is a cache of Lua's",
    "config.all": "the model's options are a dictionary",
    "config.before": "a comparison; the model's names sort by themselves",
    "config.get": "the model's options are a dictionary",
    "config.special": "the model's options are a dictionary",
    "config.text": "numbers are text until something computes with them",
    "config.keep": "what was decoded is kept for each namespace",
    "config.recall": "what was decoded is kept for each namespace",
    "config.forget_queues": "what the options say of each queue is a cache of Lua's",
    "config.meant_by": "qmodel/contract/settings.py has it",
    "config.owns": "which queues have a throttle of their own every operation must know without asking",
    "config.set_own": "which queues have a throttle of their own every operation must know without asking",
    "dependencies.count": "a request of the model has its dependents",
    "dependencies.jobs_among": "the model need not read several jobs at once",
    "dependencies.record_of": "a request of the model has dependents as a job has, and may stand in its place",
    "dependencies.request_of": "a request of the model is of another class than a job",
    "epochs.before": "the digits before a sequence are a cache of Lua's",
    "epochs.forget": "a script keeps nothing from call to call",
    "epochs.keep": "what was decoded is kept for each namespace",
    "epochs.recall": "what was decoded is kept for each namespace",
    "epochs.is_foreign": "the owner of a store of the model knows when it may have lost the end of its log",
    "epochs.token_of": "the sequence of a plain operation is text already",
    "epochs.remember": "the owner of a store of the model knows when it may have lost the end of its log",
    "history.quote": "a history is one text here, and a log may hold a line end",
    "jobs.seen_at": "the model asks lifecycle.py",
    "journal.is_on": "the model's options are a dictionary",
    "idempotency.enter": "a plain operation remembers its reply by itself",
    "idempotency.is_new": "a plain operation remembers its reply by itself",
    "idempotency.make_room": "a plain operation remembers its reply by itself",
    "idempotency.flush": "the replies of one operation are written together",
    "messages.load": "the texts of messages are read only when somebody wants to know",
    "queues.know_pending": "what a row of plain operations knows of a queue",
    "queues.forget_pending": "what a row of plain operations knows of a queue",
    "queues.unmark": "what a row of plain operations knows of a queue",
    "queues.is_late": "the time before which nothing is due is a cache of Lua's",
    "queues.keep": "what was decoded is kept for each namespace",
    "queues.recall": "what was decoded is kept for each namespace",
    "queues.load_some": "the records of a list are read by one command, as far as the budget goes, and one may be lost",
    "queues.locks_key": "a plain operation adds to the leases by itself",
    "queues.begin": "what a queue's state says is kept from call to call",
    "queues.expect_end": "the moment before which nothing can have expired is a cache of Lua's",
    "queues.expect_runs": "the moment of the first recurring job is a cache of Lua's",
    "queues.expect_admission": "the moment of the first gate is a cache of Lua's",
    "queues.has_parked": "the model asks the queue object",
    "queues.has_unaged": "a plain pop leaves a queue with such jobs to the verb",
    "queues.prefetch": "several states are read with one command",
    "queues.size": "the model asks the sorted list",
    "queues.state_key": "what a queue's state says is kept from call to call",
    "queues.unknown": "what a queue's state says is kept from call to call",
    "queues.look_due": "a read must not set the due bound, which is a cache of Lua's",
    "stats.ran_all": "durations of one operation are appended together",
    "stats.ran_one": "a plain operation counts one duration that is text",
    "stats.waited_one": "a plain operation counts one duration that is text",
    "stats.waited_all": "durations of one operation are appended together",
    "stats.flush": "durations of one operation are appended together",
    "tags.flush": "what one operation adds to the counts of tags is written together",
    "tags.has": "the model asks the job's dictionary",
    "tags.list_plain": "a plain put enters its tags by itself",
    "tags.of": "the model asks the job's dictionary",
    "throttles.is_open_plain": "a plain pop looks at the throttle by itself",
    "throttles.rests_plain": "a plain completion looks at the throttle by itself",
    "turns.count": "a plain pop leaves the order by itself",
    "turns.leave_plain": "a plain pop leaves the order by itself",
    "turns.take_next": "a plain put takes a turn by itself",
    "uniques.hold_plain": "a plain put takes its key by itself",
    "uniques.is_free": "a plain put takes its key by itself",
    "options.of_any": "spares a list where nobody has options",
    "options.size": "the model asks the dictionary",
    "requests.add_plain": "a plain addition enters its sub-request by itself",
    "requests.finish_plain": "a plain completion enters the outcome by itself",
    "requests.done_plain": "a plain completion counts its sub-request by itself",
    "requests.grown": "a plain addition counts its sub-request by itself",
    "requests.takes_plain": "a plain addition looks at the request by itself",
    "requests.flush": "a request is written once, however often an operation changes it",
    "workers.keep": "what was decoded is kept for each namespace",
    "workers.recall": "what was decoded is kept for each namespace",
    "workers.know_seen": "what a row of plain operations knows of a worker",
    "workers.know_request": "what a row of plain operations knows of a worker",
    "workers.forget_requests": "what a row of plain operations knows of a worker",
    "workers.is_new": "a plain pop looks at its own request alone",
    "workers.new_requests": "a pop of the model looks at its own request alone",
    "workers.expect": "a lease that was granted alone is written with the memory of its grant, in one command",
    "workers.claims": "the model sorts its dictionary; Lua keeps the sorted list for a step that pages through it",
    "workers.silent_holders": "the model asks each worker; Lua has no list of them",
}
"""Public functions without a twin in the model, and why."""

STORAGE = ("store", "records")
"""The storage itself. Its functions are not compared: where the model has dictionaries of objects, Lua has Redis and
records that are packed into texts."""

IN_PYTHON_ALONE = {
    "epochs.kept": "a snapshot is read from the raw keys",
    "failures.of": "the group as a sorted list, which in Lua is a key",
    "history.stages": "in Lua a history is shown as the text that it is",
    "budget.size": "the bytes of a text, which are its length in Lua",
    "journal.all": "a snapshot is read from the raw keys",
    "options.view": "in Lua the record is shown, which holds them as one text",
    "subscriptions.options": "in Lua they are kept as one text",
    "stats.bin_of": "local in Lua; the model's tests look at it",
    "stats.fold": "local in Lua; the pipeline folds as the model does",
}

OTHER_ORDER = {
    "ops/put": "in Lua a helper stands before its users",
    "ops/pop": "in Lua a helper stands before its users",
    "state/dependencies": "in Lua a helper stands before its users",
    "state/queues": "grown apart; nothing depends on it",
}

OTHER_WORDS = {
    ("state/queues", "unlock"): "where a stalled job stands is the score; in Lua a member is struck without it",
    ("state/schedules", "save"): "the fields of the hash; attributes in Python",
    ("state/stats", "failed"): "the fields of the hash; attributes in Python",
    ("state/stats", "recovered"): "the fields of the hash; attributes in Python",
    ("state/stats", "view"): "the fields of the hash; attributes in Python",
    ("state/tracking", "add"): "the name of the count; a length in Python",
    ("state/tracking", "discard"): "the name of the count; a length in Python",
}

STORAGE_CALLS = {
    "before", "budget.reach", "budget.size", "cascade.is_left",
    "completed.recheck", "config.all", "config.before", "config.get", "config.option", "config.special",
    "dependencies.count", "dependencies.jobs_among", "dependencies.record_of", "dependencies.request_of",
    "records.expiries",
    "history.quote", "jobs.get", "jobs.load", "jobs.seen_at", "jobs.view", "jobs.views", "messages.load", "queues.due",
    "queues.has_parked", "queues.has_pauses", "queues.is_due", "queues.is_late",
    "queues.lapsed", "queues.look_due", "queues.of", "queues.place", "queues.prefetch", "queues.size",
    "queues.standing", "records.clear_failure", "records.data", "records.prefetch", "records.set_data",
    "records.set_failure",
    "options.of_any", "store.events_after", "store.gather", "store.gather_no_more", "store.last", "store.text",
    "store.write_sorted", "tags.has", "tags.of", "workers.expect",
}  # fmt: skip
"""Calls in verbs that may stand on one side only: they look at what one side keeps otherwise, and decide nothing."""


# ---- files


def test_every_file_has_a_twin() -> None:
    for folder, names in (("ops", OPS), ("rules", RULES), ("state", STATE)):
        there = {path.stem for path in (ROOT / "lua" / folder).glob("*.lua")}
        alone = {name.partition("/")[2] for name in LUA_FILES_ALONE if name.startswith(folder)}
        assert there - alone == set(names)
        assert alone <= there


def test_the_bundle_names_every_file() -> None:
    there = {str(path.relative_to(ROOT / "lua").with_suffix("")) for path in (ROOT / "lua").rglob("*.lua")}
    assert sorted(bundle.FILES + bundle.DIALECTS) == sorted(there)


# ---- functions


def public(functions: list[Function]) -> list[str]:
    """The names of the public functions, in their order."""
    return [function.name for function in functions if function.public]


def twins(folder: str, name: str) -> tuple[list[Function], list[Function]]:
    """The functions of a module on both sides."""
    return python_functions(text_of(folder, name, "py")), lua_functions(text_of(folder, name, "lua"))


VERBS = [("ops", name) for name in OPS] + [("rules", name) for name in RULES]
MODULES = VERBS + [("state", name) for name in STATE if name not in STORAGE]
every_module = pytest.mark.parametrize(("folder", "name"), MODULES)


@every_module
def test_public_functions_have_the_same_names(folder: str, name: str) -> None:
    ours, theirs = (set(public(functions)) for functions in twins(folder, name))
    assert {f"{name}.{one}" for one in theirs - ours} == {one for one in IN_LUA_ALONE if one.startswith(f"{name}.")}
    assert {f"{name}.{one}" for one in ours - theirs} == {one for one in IN_PYTHON_ALONE if one.startswith(f"{name}.")}


def in_common(one: list[str], other: list[str]) -> list[str]:
    """Those of a list that the other has too."""
    return [name for name in one if name in other]


@every_module
def test_functions_stand_in_the_same_order(folder: str, name: str) -> None:
    ours, theirs = (public(functions) for functions in twins(folder, name))
    same = in_common(ours, theirs) == in_common(theirs, ours)
    assert same == (f"{folder}/{name}" not in OTHER_ORDER)


@pytest.mark.parametrize("name", OPS)
def test_verbs_have_the_same_arguments(name: str) -> None:
    ours, theirs = ({f.key: f.arguments for f in functions if f.public} for functions in twins("ops", name))
    for key, arguments in ours.items():
        if CATALOGUE.keys() & {key[0]}:
            given = theirs[key]
            assert all(mine in (one, "_") for one, mine in zip(arguments, (*given, "_", "_"), strict=False)), key


# ---- what functions say and call


def differing_words(ours: list[Function], theirs: list[Function]) -> dict[str, set[str]]:
    """The functions that are on both sides, and do not name the same events, refusals, states and stages."""
    known = {function.key: function.words for function in theirs}
    pairs = [(f.name, f.words ^ known[f.key]) for f in ours if f.key in known]
    return {name: set(words) for name, words in pairs if words}


@every_module
def test_functions_name_the_same_events_refusals_states_and_stages(folder: str, name: str) -> None:
    found = differing_words(*twins(folder, name))
    assert set(found) == {function for module, function in OTHER_WORDS if module == f"{folder}/{name}"}, found


@pytest.mark.parametrize(("folder", "name"), VERBS)
def test_every_function_of_the_verbs_has_a_twin(folder: str, name: str) -> None:
    ours, theirs = ({function.key for function in functions} for functions in twins(folder, name))
    assert ours - theirs == set()
    assert theirs - ours <= {("before", False)}  # a comparison, where Python sorts tuples


def differing_calls(ours: list[Function], theirs: list[Function]) -> dict[str, set[str]]:
    """The functions that are on both sides, and do not call the same functions."""
    known = {function.key: function.calls for function in theirs}
    pairs = [(f.name, (f.calls ^ known[f.key]) - STORAGE_CALLS) for f in ours if f.key in known]
    return {name: set(calls) for name, calls in pairs if calls}


@pytest.mark.parametrize(("folder", "name"), VERBS)
def test_functions_of_the_verbs_call_the_same_functions(folder: str, name: str) -> None:
    assert differing_calls(*twins(folder, name)) == {}


@pytest.mark.parametrize(
    ("old", "new"), [("'released'", "'retried'"), ("'waiting'", "'running'"), ("JOB_NOT_FOUND", "LOCK_LOST")]
)
def test_another_word_is_noticed(old: str, new: str) -> None:
    noticed = 0
    for folder, name in MODULES:
        lua = text_of(folder, name, "lua")
        if old in lua:
            ours = python_functions(text_of(folder, name, "py"))
            noticed += differing_words(ours, lua_functions(lua.replace(old, new))) != differing_words(
                ours, lua_functions(lua)
            )
    assert noticed


@pytest.mark.parametrize("line", ["  stats.retried(now, job.queue)\n", "  put.check_distinct(op.jobs)\n"])
def test_a_missing_call_is_noticed(line: str) -> None:
    lua = text_of("ops", "finish", "lua")
    assert line in lua
    assert differing_calls(python_functions(text_of("ops", "finish", "py")), lua_functions(lua.replace(line, "")))


# ---- dialects

QLESS = ("arguments", "jobs", "queues", "recurring", "settings", "shapes", "texts", "throttles", "session")

QLESS_ALONE = {
    "arguments": ({"first"}, {"add", "add_list", "fail"}),
    "jobs": (set(), {"finish", "page"}),
    "texts": ({"dump"}, {"digits", "facts", "quote", "quoted"}),
    "shapes": (set(), {"set"}),
    "session": (
        set(),
        {
            "ask",
            "ask_at",
            "attempt",
            "begin",
            "check",
            "check_room",
            "ended",
            "events",
            "fail",
            "fires",
            "forget",
            "gate",
            "holders",
            "holding",
            "holds",
            "is_listed",
            "is_paused",
            "leased",
            "listed",
            "log",
            "lost",
            "named",
            "note",
            "notice",
            "option",
            "parked_at",
            "parked_in",
            "ready",
            "ready_of",
            "recurring",
            "remember",
            "running",
            "say",
            "seq",
            "stored",
            "tracked",
        },
    ),
}  # a class in Python
"""The public functions on one side only: how each language writes JSON and lists, and how it ends a call."""


@pytest.mark.parametrize("name", QLESS)
def test_the_dialect_has_the_same_functions_on_both_sides(name: str) -> None:
    ours = set(public(python_functions((ROOT / f"qmodel/dialects/qless/{name}.py").read_text(encoding="utf-8"))))
    theirs = set(public(lua_functions(bundle.read(f"dialects/qless_{name}"))))
    assert (ours - theirs, theirs - ours) == QLESS_ALONE.get(name, (set(), set()))


def test_the_dialect_has_the_same_commands_on_both_sides() -> None:
    text = bundle.read("dialects/qless")
    commands, reqless = text[text.index("local COMMANDS") :].split("local function reqless")
    found = re.findall(r"(?:\['([\w.]+)'\]|(\w+)) = qless_\w+\.", commands)
    assert {one or other for one, other in found} == commands_module.COMMANDS.keys()
    aliases = dict(re.findall(r"\['([\w.]+)'\] = \{'([\w.]+)'", reqless))
    assert aliases == {name: words[0] for name, words in commands_module.REQLESS.items()}


def places_in(lua: str) -> dict[str, tuple[int | str, ...]]:
    """The calls of a document in Lua, without those that are functions; places counted from 0, as in Python."""

    def place(word: str) -> int | str:
        if not word.startswith("'"):
            return int(word) - 1
        word = word.strip("'")
        return f"{int(word[:-1]) - 1}*" if word.endswith("*") else word

    found = re.findall(r"(\w+) = \{('\w[^{}]*)\}", lua)
    return {name: tuple(map(place, words.split(", "))) for name, words in found}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_spells_calls_alike_on_both_sides(document: str) -> None:
    text = bundle.read("dialects/qless_documents")
    shared, own = text[text.index("local function shared") :].split("local function documents")
    own = own[own.index(f"['{document}']") :]
    own = own[: own.index("['001']")] if document == "000" else own
    ours = {name: places for name, places in DOCUMENTS[document].items() if not callable(places)}
    assert places_in(shared) | places_in(own[: own.index("-- What stands")] if document == "001" else own) == ours


# ---- the dispatch


def test_an_operation_is_found_by_its_section_on_both_sides() -> None:
    for name, spec in CATALOGUE.items():
        verb = engine.VERBS[name]
        assert verb.__module__ == f"qmodel.model.ops.{spec.section}"
        assert verb.__name__.strip("_") == name
        assert f"function {spec.section}.{name}(" in text_of("ops", spec.section, "lua")
    assert sorted({spec.section for spec in CATALOGUE.values()}) == OPS
    described = {path.stem for path in (ROOT / "qmodel/contract/operations").glob("[a-z]*.py")}
    assert described == {*OPS, "spec"}


def test_the_lua_catalogue_is_made_from_this_one() -> None:
    assert bundle.read("contract/catalogue") == lua_catalogue.catalogue()
    assert bundle.read("wire/verbs") == lua_catalogue.verbs()


def test_every_state_that_a_job_can_be_in_has_its_place_on_both_sides() -> None:
    there = re.findall(r"^  (\w+) = \{\w+\.?\w*, \w+\.?\w*\},$", text_of("state", "state_index", "lua"), re.M)
    assert there == [*state_index.PLACES, *state_index.SHORTER]
    assert set(there) == set(STATES)


# ---- what only some files may do


def redis_users() -> set[str]:
    """The files of the library that call Redis."""
    return {name for name in bundle.FILES + bundle.DIALECTS if "redis." in without_comments(bundle.read(name))}


def test_only_nouns_touch_storage() -> None:
    """Two others do: the clock, and ops/bare.lua, which calls the commands of a step one after the other."""
    others = {name for name in redis_users() if not name.startswith("state/")}
    assert others == {"wire/register", "ops/bare"}
    assert re.findall(r"redis\.\w+\('(\w+)'", bundle.read("wire/register")) == ["TIME"]


PREFIX_PASSED = re.compile(
    r"keys\.begin\(prefix\)|repair\.\w+\(prefix\)|\w+\.call\((?:[\w.\[\]]+, )?(?:keys\.)?prefix, \w+(?:, \w+)*[()]"
    r"|(?:register\.group|calls\.execute)\((?:operation, )?prefix, \w+(?:, \w+)*\)"
)


def test_only_keys_builds_keys() -> None:
    for name in bundle.FILES + bundle.DIALECTS:
        if name != "state/keys":
            assert "prefix" not in PREFIX_PASSED.sub("", without_comments(bundle.read(name))), name


RECORDS = r"(\w+_)?job|namespace"
IN_RECORDS_ALONE = (
    set(bundle.fields("job"))
    - {argument.name for spec in CATALOGUE.values() for argument in spec.arguments}
    - {"data", "text"}
)
"""Fields by which a variable that holds a record is known, whatever its name."""


def misnamed(text: str) -> set[str]:
    """Variables that hold a record under another name: the bundle would not replace their fields by indexes."""
    found = re.findall(r"\b(\w+)\.(\w+)\b(?!\()", without_comments(text))
    return {name for name, field in found if field in IN_RECORDS_ALONE and not re.fullmatch(RECORDS, name)}


ALSO_WITH_A_SEQUENCE = {"store", "schedule", "catalogue", "unique", "message", "subscription", "request"}


def test_what_holds_a_record_is_called_job() -> None:
    for name in bundle.FILES:
        assert misnamed(bundle.read(name)) <= ALSO_WITH_A_SEQUENCE, name


def test_a_record_under_another_name_is_noticed() -> None:
    assert misnamed("local it = records.get(jid)\nit.seq, other_job.state = 1, it.queue") == {"it"}


def assigned_globals(text: str) -> set[str]:
    """The names to which a Lua module assigns without having declared them."""
    code = re.sub(r"'[^'\n]*'", "''", without_comments(text))
    declared = {
        name.strip()
        for names in re.findall(r"\blocal ([\w, \n]+?)(?:\s*=|(?<!,)$)", code, re.M)
        for name in names.split(",")
    }
    declared |= {
        name.strip() for names in re.findall(r"\bfunction [\w.]*\(([^)]*)\)", code) for name in names.split(",")
    }
    declared |= {name.strip() for names in re.findall(r"\bfor ([\w, ]+?) (?:in|=)", code) for name in names.split(",")}
    assigned = re.findall(r"^\s*(\w+(?:, *\w+)*)\s*=[^=]", code, re.M)
    statements = {name.strip() for names in assigned for name in names.split(",")}
    within_tables: set[str] = set()
    while bodies := re.findall(r"\{[^{}]*\}", code):
        within_tables |= {name for body in bodies for name in re.findall(r"(\w+)\s*=", body)}
        code = re.sub(r"\{[^{}]*\}", "", code)
    functions = set(re.findall(r"^function (\w+)\(", code, re.M))
    return (statements - declared - within_tables) | functions


@pytest.mark.parametrize("name", [name for name in bundle.FILES + bundle.DIALECTS if name != "contract/catalogue"])
def test_no_global_is_assigned(name: str) -> None:
    assert assigned_globals(bundle.read(name)) == set()


@pytest.mark.parametrize("line", ["  leaked = 1\n", "leaked, other = 1, 2\n", "function leaked()\nend\n"])
def test_a_global_is_noticed(line: str) -> None:
    assert "leaked" in assigned_globals(bundle.read("ops/lease") + line)
