"""Codecs: data and results are encrypted and stored elsewhere, and are read by whoever has the keys."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from qmodel import App, DataError
from qmodel.app import Failed, Json, perform
from qmodel.app.codecs import ClaimCheck, Coded, Encrypted, decoder
from qmodel.web import create

OLD, NEW = b"o" * 32, b"n" * 16
SECRET = "4111-2222-3333-4444"
_NUMBERS = itertools.count(1)


@pytest.fixture(params=["folder", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder, and a store of objects in this process."""
    yield str(tmp_path / "claims") if request.param == "folder" else f"memory://claims-{next(_NUMBERS)}"


def files(url: str) -> list[str]:
    """Name the files below a URL."""
    fs, root = fsspec.core.url_to_fs(url)
    return sorted(str(one) for one in fs.find(root))


def performed(app: App, queue: str = "q") -> Any:
    """Perform the next job of a queue; give how that ended."""
    job = app.client.queues[queue].pop()
    outcome = perform(app, job)
    app.client.execute(outcome.operation(job))
    return outcome


def test_data_and_results_are_encrypted_and_the_job_sees_none_of_it() -> None:
    app = App(f"memory://codecs-{next(_NUMBERS)}", serializer=Coded(Json(), Encrypted({"k": OLD})))

    @app.job(queue="q")
    def charge(card: str) -> str:
        return f"charged {card}"

    job = charge.put(card=SECRET)
    assert SECRET not in job.text and json.loads(job.text).keys() == {"$aesgcm"}
    performed(app)
    raw = app.client.jobs[job.jid]
    assert SECRET not in repr(raw.raw) and job.wait(timeout=1) == f"charged {SECRET}"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_json_has_comes_back(value: Any) -> None:
    coded = Coded(Json(compress=20), Encrypted({"k": OLD}), ClaimCheck("memory://drawn", above=10))
    assert coded.loads(coded.dumps(value)) == value


def test_two_codecs_have_two_marks() -> None:
    with pytest.raises(ValueError, match="Two codecs have the same mark"):
        Coded(Json(), Encrypted({"k": OLD}), Encrypted({"second": NEW}))


def test_the_same_text_is_never_encrypted_alike() -> None:
    coded = Coded(Json(), Encrypted({"k": OLD}))
    assert len({coded.dumps(SECRET) for _ in range(100)}) == 100


def test_keys_rotate() -> None:
    before, both = Coded(Json(), Encrypted({"old": OLD})), Coded(Json(), Encrypted({"new": NEW, "old": OLD}))
    after = Coded(Json(), Encrypted({"new": NEW}))
    assert both.loads(before.dumps(1)) == 1 and after.loads(both.dumps(2)) == 2
    with pytest.raises(DataError, match="encrypted with the key 'old', which this app does not have"):
        after.loads(before.dumps(3))


@pytest.mark.parametrize(
    "change", [lambda body: body[:-8], lambda body: "k." + "A" * 40, lambda body: "k.?", lambda body: "k."]
)
def test_a_changed_text_is_refused(change: Any) -> None:
    coded = Coded(Json(), Encrypted({"k": OLD}))
    body = json.loads(coded.dumps(SECRET))["$aesgcm"]
    with pytest.raises(DataError, match="do not decrypt"):
        coded.loads(json.dumps({"$aesgcm": change(body)}, separators=(",", ":")))


@pytest.mark.parametrize("keys", [{}, {"a.b": OLD}, {"k": b"short"}])
def test_keys_that_are_none_are_refused(keys: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"key|Key"):
        Encrypted(keys)


def test_data_without_a_mark_are_read_unless_one_is_required() -> None:
    assert Coded(Json(), Encrypted({"k": OLD})).loads('{"n":1}') == {"n": 1}
    strict = Coded(Json(), Encrypted({"k": OLD}), required=["$aesgcm"])
    assert strict.loads(strict.dumps(1)) == 1 and strict.loads("") is None
    with pytest.raises(DataError, match=r"have no \$aesgcm, which this app requires"):
        strict.loads('{"n":1}')
    with pytest.raises(ValueError, match=r"No codec has the required mark \$zip"):
        Coded(Json(), required=["$zip"])


def test_data_that_unpack_to_themselves_end() -> None:
    class Same:
        mark = "$same"

        def encode(self, text: str) -> str | None:
            return text

        def decode(self, body: str) -> str:
            return json.dumps({"$same": body}, separators=(",", ":"))

    assert Coded(Json(), Same()).loads('{"$same":"x"}') == {"$same": "x"}


def test_a_job_whose_data_cannot_be_read_fails_with_the_reason() -> None:
    url = f"memory://codecs-{next(_NUMBERS)}"

    def shop(keys: dict[str, bytes]) -> App:
        app = App(url, serializer=Coded(Json(), Encrypted(keys)))

        @app.job(queue="q")
        def charge(card: str) -> None: ...

        return app

    shop({"old": OLD}).jobs["charge"].put(card=SECRET)  # type: ignore[attr-defined]
    outcome = performed(shop({"new": NEW}))
    assert isinstance(outcome, Failed) and "encrypted with the key 'old'" in outcome.message


def test_long_texts_are_stored_elsewhere(url: str) -> None:
    app = App(f"memory://codecs-{next(_NUMBERS)}", serializer=Coded(Json(), ClaimCheck(url, above=100)))

    @app.job(queue="q")
    def resize(image: str) -> str:
        return image * 2

    small, large = resize.put(image="x"), resize.put(image="y" * 1000)
    assert small.text == '{"image":"x"}' and json.loads(large.text).keys() == {"$claim"}
    assert len(files(url)) == 1
    performed(app), performed(app)
    assert large.wait(timeout=1) == "y" * 2000 and len(files(url)) == 2
    resize.put(image="y" * 1000)
    assert len(files(url)) == 2  # the same text is the same file


def test_long_texts_are_encrypted_before_they_are_stored(url: str) -> None:
    coded = Coded(Json(), Encrypted({"k": OLD}), ClaimCheck(url, above=100))
    text = coded.dumps(SECRET * 100)
    fs = fsspec.core.url_to_fs(url)[0]
    assert json.loads(text).keys() == {"$claim"} and SECRET.encode() not in fs.cat_file(files(url)[0])
    assert coded.loads(text) == SECRET * 100


def test_a_stored_text_that_is_gone_or_changed_is_told(url: str) -> None:
    coded = Coded(Json(), ClaimCheck(url, above=10))
    text = coded.dumps("x" * 100)
    fs = fsspec.core.url_to_fs(url)[0]
    fs.pipe_file(files(url)[0], b"other")
    with pytest.raises(DataError, match="is not what was stored"):
        coded.loads(text)
    fs.rm(files(url)[0])
    with pytest.raises(DataError, match="and are gone"):
        coded.loads(text)


@pytest.mark.parametrize("name", ["../../etc/passwd", "2026-01-01/../x", "", "2026-01-01/" + "A" * 64])
def test_only_names_of_stored_texts_are_read(url: str, name: str) -> None:
    with pytest.raises(DataError, match="is not the name of stored data"):
        Coded(Json(), ClaimCheck(url)).loads(json.dumps({"$claim": name}, separators=(",", ":")))


def test_old_texts_are_cleaned_by_day(url: str) -> None:
    claims = ClaimCheck(url, above=10)
    assert claims.clean(0) == 0
    text = claims.encode("x" * 100)
    assert text is not None
    fs, root = fsspec.core.url_to_fs(url)
    fs.makedirs(f"{root}/2020-01-01", exist_ok=True)
    fs.pipe_file(f"{root}/2020-01-01/{'0' * 64}", b"old")
    fs.makedirs(f"{root}/other", exist_ok=True)
    fs.pipe_file(f"{root}/other/file", b"of somebody else")
    assert claims.clean(1) == 1 and len(files(url)) == 2
    assert claims.decode(text) == "x" * 100


def test_pages_show_stored_data_or_what_they_mean(tmp_path: Path) -> None:
    app = App(f"memory://codecs-{next(_NUMBERS)}", serializer=Coded(Json(), Encrypted({"k": OLD})))

    @app.job(queue="q")
    def charge(card: str) -> str:
        return f"charged {card}"

    @app.job(queue="hidden", redact=["card"])
    def redacted(card: str) -> None: ...

    job, hidden = charge.put(card=SECRET), redacted.put(card=SECRET)
    performed(app)
    shown = TestClient(create(app, hosts="*"))
    decoded = TestClient(create(app, hosts="*", writable=True, decode=decoder(app)))
    assert "aesgcm" in shown.get(f"/job?jid={job.jid}").text and SECRET not in shown.get(f"/job?jid={job.jid}").text
    page = decoded.get(f"/job?jid={job.jid}").text
    assert page.count(SECRET) == 2 and "decoded to be shown" in page and "<textarea" not in page
    assert SECRET not in decoded.get(f"/job?jid={hidden.jid}").text
    assert SECRET not in decoded.get(f"/api/v1/jobs/{job.jid}").text


def test_what_cannot_be_read_is_shown_as_it_is_stored() -> None:
    app = App("memory://", serializer=Coded(Json(), Encrypted({"k": OLD})))
    readable = decoder(app)
    for text in ("", '{"n":1}', '{"$aesgcm":"other.x"}', "no JSON"):
        assert readable("k", text) == text
    assert decoder(App("memory://"))("k", '{"$aesgcm":"k.x"}') == '{"$aesgcm":"k.x"}'


@pytest.mark.parametrize("mark", ["$aesgcm", "$claim", "$zlib"])
def test_a_result_that_looks_like_what_a_codec_makes_is_refused_because_nobody_could_read_it(mark: str) -> None:
    app = App("memory://", serializer=Coded(Json(), Encrypted({"k": OLD}), ClaimCheck("memory://looks", above=1000)))

    @app.job(queue="q")
    def echo(value: dict[str, str]) -> dict[str, str]:
        return value

    job = echo.put({mark: "k.x"})
    outcome = performed(app)
    assert isinstance(outcome, Failed) and outcome.group == "BadResult"
    assert f"A value with nothing but {mark} could not be read again." in outcome.message
    echo.options(jid="more").put({mark: "k.x", "more": ""})
    performed(app)
    assert job.refresh().state == "failed" and echo.result("more", timeout=0) == {mark: "k.x", "more": ""}
