"""Tests of the test helpers: some in folders of their own, in which pytest is run anew."""

from __future__ import annotations

import pytest

from qmodel.app import App


@pytest.fixture
def qmodel_app() -> tuple[App, ...]:
    """No App, though other tests of this process have some."""
    return ()
