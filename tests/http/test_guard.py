"""Who may ask, who may change things, and whether it was meant."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from qmodel.http import create
from qmodel.http.guard import Denied, Exposed, Guard, check_binding, checked, printable


def request(method: str = "GET", **headers: str) -> Request:
    """A request to localhost, unless a header says otherwise."""
    given = {"host": "localhost:8000"} | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    return Request({"type": "http", "method": method, "path": "/", "query_string": b"", "headers": raw})


def basic(pair: str) -> str:
    """The header of a user and a password."""
    return "Basic " + base64.b64encode(pair.encode()).decode()


def denied(act: Any, *args: Any) -> tuple[int, str]:
    """The status and the code with which something is denied."""
    with pytest.raises(Denied) as found:
        act(*args)
    return found.value.status_code, found.value.code


# ---- who


@pytest.mark.parametrize("auth", ["ada:secret", "ada:se:cret", "ada:geheimnisträger"])
def test_the_password_opens(auth: str) -> None:
    guard = Guard(auth)
    guard.check(request(authorization=basic(auth)))
    guard.check(request(authorization=basic(auth).replace("Basic", "basic")))


@pytest.mark.parametrize(
    "header",
    [None, "", "Basic", "Basic ???", basic("ada:Secret"), basic("ada"), basic("eve:secret"), "Bearer ada:secret", "ä"],
)
def test_anything_else_does_not(header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    assert denied(Guard("ada:secret").check, request(**headers)) == (401, "UNAUTHORIZED")


def test_who_is_denied_is_told_how_to_prove_it() -> None:
    with pytest.raises(Denied) as found:
        Guard("token").check(request())
    assert (found.value.headers or {})["WWW-Authenticate"].startswith("Basic realm=")


def test_a_token_opens_as_bearer_and_as_the_password_of_any_user() -> None:
    guard = Guard("s3cr3t")
    guard.check(request(authorization="Bearer s3cr3t"))
    guard.check(request(authorization=basic("me:s3cr3t")))
    assert denied(guard.check, request(authorization="Bearer other")) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("auth", ["", " ", ":", "ada:", "ada: ", ":secret"])
def test_an_empty_password_is_refused_when_it_is_set(auth: str) -> None:
    with pytest.raises(ValueError, match="user:password"):
        checked(auth)


# ---- where to


def test_without_a_password_only_this_machine_s_names_are_answered() -> None:
    guard = Guard()
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000"):
        guard.check(request(host=host))
    for host in ("evil.example", "evil.example:8000", "", "["):
        assert denied(guard.check, request(host=host)) == (403, "WRONG_HOST")


def test_names_may_be_given_and_a_password_allows_any() -> None:
    Guard(hosts=["shop.example"]).check(request(host="shop.example:443"))
    Guard(hosts="*").check(request(host="anything"))
    Guard("ada:secret").check(request(host="shop.example", authorization=basic("ada:secret")))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "shop.example", ""])
def test_an_address_that_others_reach_needs_a_password(host: str) -> None:
    with pytest.raises(Exposed, match="--auth"):
        check_binding(host, None)
    check_binding(host, "ada:secret")
    check_binding("127.0.0.1", None)


# ---- was it meant


def test_nothing_can_be_changed_unless_it_is_writable() -> None:
    assert denied(Guard().check, request("POST")) == (403, "READ_ONLY")
    Guard(writable=True).check(request("POST"))
    Guard().check(request("GET"))


def test_what_a_method_does_not_tell_can_be_said() -> None:
    Guard().check(request("POST"), writes=False)
    with pytest.raises(Denied):
        Guard().check(request("GET"), writes=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site", "origin": "http://evil.example"},
        {"sec_fetch_site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:9000"},
        {"origin": "null"},
        {"origin": "http://["},
    ],
)
def test_what_another_site_sends_is_denied(headers: dict[str, str]) -> None:
    assert denied(Guard(writable=True).check, request("POST", **headers)) == (403, "FORGED")
    Guard(writable=True).check(request("GET", **headers))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_fetch_site": "same-origin", "origin": "https://shop.example"},
        {"sec_fetch_site": "none"},
        {"origin": "http://localhost:8000"},
        {"origin": "https://localhost", "host": "localhost"},
        {"origin": "https://localhost", "host": "localhost:443"},
    ],
)
def test_programs_and_own_pages_may_change_things(headers: dict[str, str]) -> None:
    Guard(writable=True).check(request("POST", **headers))


def test_a_form_carries_the_token_of_its_page() -> None:
    guard = Guard(writable=True)
    token = guard.token(request())
    guard.verify(request("POST"), {"csrf": token})
    guard.verify(request("POST", x_csrf_token=token))
    for form in (None, {}, {"csrf": ""}, {"csrf": token[:-1]}, {"csrf": "ä"}):
        assert denied(guard.verify, request("POST"), form) == (403, "FORGED")
    foreign = request("POST", origin="http://evil.example")
    assert denied(guard.verify, foreign, {"csrf": token}) == (403, "FORGED")


def test_a_token_is_of_one_server_and_one_user() -> None:
    guard = Guard("ada:secret", writable=True)
    ada = guard.token(request(authorization=basic("ada:secret")))
    assert ada != guard.token(request(authorization=basic("eve:secret")))
    assert ada != Guard("ada:secret").token(request(authorization=basic("ada:secret")))
    one, other = (Guard("ada:secret", secret="shared") for _ in range(2))
    assert one.token(request()) == other.token(request())


# ---- what reaches the log


FORGED = "eve\n10.0.0.9 ada POST /v1/jobs, 200\x1b[2J\u2028\x00"


def test_a_name_of_a_user_cannot_forge_a_line_of_the_log() -> None:
    said = Guard("ada:secret").user(request(authorization=basic(f"{FORGED}:x")))
    assert said == r"eve\n10.0.0.9 ada POST /v1/jobs, 200\x1b[2J\u2028\x00"
    assert Guard("ada:secret").user(request(authorization=basic("Zoë:x"))) == "Zoë"
    assert len(printable("x" * 10_000)) < 300


def test_nothing_of_a_request_reaches_the_log_with_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    """Before the password is checked, anybody may send anything."""
    caplog.set_level("DEBUG", "qmodel.http")
    with TestClient(create("memory://", auth="ada:secret"), base_url="http://localhost") as api:
        for path in ("/v1/jobs", "/v1/jobs/x%0a10.0.0.9%20ada%20POST,%20200", "/v1/jobs/%1b[2J%e2%80%a8"):
            assert api.get(path, headers={"authorization": basic(f"{FORGED}:x")}).status_code == 401
            assert api.get(path).status_code == 401
    said = [record.getMessage() for record in caplog.records if record.name.startswith("qmodel")]
    assert len(said) == 6 and all(one.isprintable() for one in said)


def test_hosts_are_given_in_any_case() -> None:
    guard = Guard(hosts=["Jobs.Example.com"])
    guard.check(request(host="jobs.example.com"))
    guard.check(request(host="JOBS.example.COM:8000"))
