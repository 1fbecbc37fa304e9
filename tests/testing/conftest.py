"""Fixtures for the tests of the test helpers; some tests run pytest again in a temporary folder."""

from __future__ import annotations

import pytest

from qmodel.app import App


@pytest.fixture
def qmodel_app() -> tuple[App, ...]:
    """Hide the Apps of other tests of this process."""
    return ()
