"""The options of the format `qmodel`, read one by one; what nobody reads is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence


class Given:
    """Options as Spark gives them, whose names know no case."""

    def __init__(self, options: Mapping[str, str], known: Sequence[str]) -> None:
        self._known = known
        self._left = {name.lower(): value for name, value in options.items()}

    def text(self, name: str, default: str = "") -> str:
        """An option."""
        return self._left.pop(name.lower(), default)

    def whole(self, name: str, default: int, low: int | None = 0) -> int:
        """A whole number, from `low` on. Raises ValueError."""
        said = self.text(name, str(default))
        if not re.fullmatch(r"-?[0-9]{1,15}", said) or (low is not None and int(said) < low):
            raise ValueError(f"{name} is a whole number{f' from {low}' if low is not None else ''}, and not {said!r}.")
        return int(said)

    def flag(self, name: str, default: bool) -> bool:
        """True or false. Raises ValueError."""
        said = self.text(name, str(default)).lower()
        if said not in ("true", "false"):
            raise ValueError(f"{name} is true or false, and not {said!r}.")
        return said == "true"

    def url(self) -> str:
        """The URL of the server, or QMODEL_URL: options are shown in plans, and a password should not be.

        Raises ValueError where there is none, or where other processes cannot reach it.
        """
        url = self.text("url") or os.environ.get("QMODEL_URL", "")
        if not url or url.startswith("memory:"):
            raise ValueError(
                f"Spark works in other processes, so it needs the URL of a server, and this is {url!r}. "
                f'Say option("url", "redis://localhost:6379/0"), or set QMODEL_URL.'
            )
        return url

    def end(self) -> None:
        """Refuse what was not read: ValueError."""
        if self._left:
            raise ValueError(f"There is no option {min(self._left)!r}: they are {', '.join(self._known)}.")
