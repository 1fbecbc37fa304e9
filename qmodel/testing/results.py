"""Wait for results in a test. Where no worker performs jobs, waiting would never end, so it raises at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmodel.client.aio import AsyncClient
from qmodel.client.aio_results import AsyncResults
from qmodel.client.outcomes import Ended
from qmodel.client.sync import Client
from qmodel.client.sync_results import Results
from qmodel.errors import NotEnded
from qmodel.testing.steps import Steps, adrive, drive


class WouldWait(NotEnded):
    """A job that a test waits for cannot end: only the test performs jobs."""

    def __init__(self, jid: str, timeout: float, why: str) -> None:
        super().__init__(jid, timeout)
        self.args = (jid, timeout, why)
        self.why = why

    def __str__(self) -> str:
        return f"Waiting for job {self.jid} would never end: {self.why}"


Meanwhile = Callable[[Sequence[str], float], Steps[bool]]
"""Performs jobs while a job waits for others, and says whether to sleep; or raises WouldWait."""


class CheckedResults(Results):
    """Waits for results only if they can come."""

    def __init__(self, client: Client, meanwhile: Meanwhile) -> None:
        super().__init__(client)
        self._meanwhile = meanwhile

    def wait(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Give the ended jobs; perform other jobs meanwhile, sleep, or raise WouldWait."""
        found = super().wait(jids, 0)
        missing = [jid for jid in jids if jid not in found]
        sleep = bool(missing) and timeout > 0 and drive(self._meanwhile(missing, timeout))
        return super().wait(jids, timeout if sleep else 0)


class AsyncCheckedResults(AsyncResults):
    """The same in an event loop."""

    def __init__(self, client: AsyncClient, meanwhile: Meanwhile) -> None:
        super().__init__(client)
        self._meanwhile = meanwhile

    async def wait(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Give the ended jobs; perform other jobs meanwhile, sleep, or raise WouldWait."""
        found = await super().wait(jids, 0)
        missing = [jid for jid in jids if jid not in found]
        sleep = bool(missing) and timeout > 0 and await adrive(self._meanwhile(missing, timeout))
        return await super().wait(jids, timeout if sleep else 0)
