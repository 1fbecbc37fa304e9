"""The kit on `qmodel serve`: drivers are checked without Redis."""

from __future__ import annotations

from qmodel.conformance.kit import show, suite
from qmodel.conformance.kit.driver import Driver
from qmodel.conformance.kit.namespace import namespaces
from qmodel.conformance.kit.session import Session
from tests.kit.test_reference import PYTHON
from tests.serve.support import serving


def test_a_driver_conforms_on_the_model_behind_the_protocol() -> None:
    with serving() as server, namespaces(server.url) as there, Driver(PYTHON) as driver:
        report = suite.run(Session([driver], there), "core")
        assert report.conforms, "\n".join(map(show.failure, report.failures))
        assert len(report.results) > 100
