"""The backend for Redis works on this server as on Redis: its own tests, except those that read keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends import test_redis as of_redis
from tests.backends.test_redis import backend, url  # noqa: F401  # the fixtures of those tests
from tests.serve.support import serving
from tests.servers import Server

KEYS = {
    "test_what_takes_a_request_id_gets_a_fresh_one",
    "test_two_prefixes_do_not_see_each_other",
    "test_both_dumps_are_what_the_keyspace_in_this_process_holds",
    "test_a_dump_holds_values_of_every_type",
    "test_a_dump_of_too_many_keys_is_refused",
}
"""These look at keys, and there are none."""

LIBRARIES = {
    "test_many_clients_load_the_library_once",
    "test_an_older_library_is_replaced",
    "test_another_library_of_the_same_revision_is_replaced",
    "test_a_newer_library_stays_and_serves",
    "test_clients_of_two_versions_settle_on_the_newer",
    "test_a_deployer_may_go_back_to_an_older_library",
}
"""These load libraries of other versions, and there is one; the first counts by a statistic that only Redis keeps."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Replace the server of those tests by `qmodel serve`."""
    with serving() as started:
        yield Server("serve", started.url)


globals().update(
    {name: test for name, test in vars(of_redis).items() if name.startswith("test_") and name not in KEYS | LIBRARIES}
)


def test_what_is_left_out_is_there() -> None:
    assert vars(of_redis).keys() >= KEYS | LIBRARIES
