"""Read the options of the format `qmodel` one by one; an option that is not read is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence


class Given:
    """Options as Spark gives them; names are case-insensitive."""

    def __init__(self, options: Mapping[str, str], known: Sequence[str]) -> None:
        self._known = known
        self._left = {name.lower(): value for name, value in options.items()}

    def text(self, name: str, default: str = "") -> str:
        """Read an option."""
        return self._left.pop(name.lower(), default)

    def whole(self, name: str, default: int, low: int | None = 0, digits: int = 15) -> int:
        """Read a whole number that is at least `low`. Raises ValueError."""
        said = self.text(name, str(default))
        if not re.fullmatch(rf"-?[0-9]{{1,{digits}}}", said) or (low is not None and int(said) < low):
            raise ValueError(f"{name} must be a whole number{f' from {low}' if low is not None else ''}, not {said!r}.")
        return int(said)

    def flag(self, name: str, default: bool) -> bool:
        """Read true or false. Raises ValueError."""
        said = self.text(name, str(default)).lower()
        if said not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, not {said!r}.")
        return said == "true"

    def url(self) -> str:
        """Read the URL of the server, or QMODEL_URL: Spark shows options in plans, and a password should not be there.

        Raises ValueError if there is none, or if other processes cannot reach it.
        """
        url = self.text("url") or os.environ.get("QMODEL_URL", "")
        if not url or url.startswith("memory:"):
            raise ValueError(
                f"Spark works in other processes, so it needs the URL of a server, and this is {url!r}. "
                f'Say option("url", "redis://localhost:6379/0"), or set QMODEL_URL.'
            )
        return url

    def end(self) -> None:
        """Refuse options that were not read. Raises ValueError."""
        if self._left:
            raise ValueError(f"There is no option {min(self._left)!r}. The options are {', '.join(self._known)}.")
