"""RESP, the protocol of Redis: parse requests, and write replies in version 2 or 3.

The module does no input or output. Everything is text here: bytes are decoded as UTF-8, and invalid bytes become lone
surrogates. The engine refuses these as arguments, and the writer encodes them as the original bytes.

There are two ways to parse. A chunk of complete commands in plain ASCII, without line ends inside arguments, is split
by one call. All other input goes through a parser that reads argument by argument, and keeps an incomplete command
until the rest arrives.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

LINE: Final = 1 << 16
"""The maximum length of an inline command, and of the line before an argument, in bytes."""

_SHORT: Final = 4096
_SIZES: Final = [f"${size}" for size in range(_SHORT)]
_COUNTS: Final = {f"*{count}": count for count in range(1, 256)}


class Limits(NamedTuple):
    """The limits of one command: the number of arguments, the bytes of one argument, and the bytes of all."""

    arguments: int = 1 << 20
    argument: int = 4 << 20
    command: int = 64 << 20


BEFORE_AUTH: Final = Limits(10, 1 << 14, 1 << 16)
"""The limits before authentication; Redis has the same."""


class Malformed(Exception):
    """The input is not RESP, or exceeds a limit."""


class Parser:
    """Parses a stream of bytes into commands. After a mistake `error` describes it, and no more commands are given."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008
        self.limits = limits
        self.error = ""
        self._rest: list[bytes] = []
        self._size = self._needed = 0
        self._args: list[str] = []
        self._left = self._taken = 0
        self._in_line = False  # whether the unread rest is the beginning of a line

    def feed(self, data: bytes) -> list[list[str]]:
        """Add received bytes; give the commands that are now complete."""
        if not self._takes(data):
            return []
        buffer = data if len(self._rest) == 1 else b"".join(self._rest)
        commands: list[list[str]] = []
        at = 0
        if self._left:  # the rest of a command that has been read in part
            at = self._read(buffer, at, commands, 1)
        if not self._left and not self.error and buffer.isascii():
            at = _split(buffer, at, commands, self.limits)
        if not self.error:
            at = self._read(buffer, at, commands)
        self._rest = [buffer[at:]] if at < len(buffer) else []
        self._size = len(buffer) - at
        return commands

    def _takes(self, data: bytes) -> bool:
        """Keep received bytes, unless there was a mistake before them; say whether they may complete a command."""
        if self.error:
            return False
        self._rest.append(data)
        self._size += len(data)
        return self._size >= self._needed and not (self._in_line and self._size < LINE and b"\n" not in data)

    def allow(self, limits: Limits) -> list[list[str]]:
        """Set other limits; give the commands behind one that exceeded those before."""
        self.limits, self.error = limits, ""
        return self.feed(b"")

    def _read(self, buffer: bytes, at: int, commands: list[list[str]], most: int = 1 << 62) -> int:
        """Read at most `most` commands; give the position of the first unread byte."""
        self._needed = 0
        while at < len(buffer) and len(commands) < most:
            try:
                after = self._argument(buffer, at) if self._left else self._head(buffer, at, commands)
            except Malformed as error:
                self.error = str(error)
                break
            if after < 0:
                break
            at = after
            if self._left == 0 and self._args:
                commands.append(self._args)
                self._args = []
        return at

    def _head(self, buffer: bytes, at: int, commands: list[list[str]]) -> int:
        """Read the head of a command, or an inline command; give the next position, or -1 if more bytes are needed."""
        stop = buffer.find(b"\n", at, at + LINE)
        self._in_line = stop < 0
        if stop < 0:
            if len(buffer) - at >= LINE:
                raise Malformed("too big inline request")
            return -1
        line = buffer[at:stop].removesuffix(b"\r")
        if line[:1] == b"*":
            count = _whole(line[1:])
            if count is None or count > self.limits.arguments:
                raise Malformed("invalid multibulk length")
            self._left, self._taken = max(count, 0), 0
        elif words := split_inline(_text(line)):
            commands.append(words)
        return stop + 1

    def _argument(self, buffer: bytes, at: int) -> int:
        """Read one argument; give the next position, or -1 if more bytes are needed."""
        stop = buffer.find(b"\r\n", at, at + 32)
        if buffer[at] != 36:  # $
            raise Malformed(f"expected '$', got {chr(buffer[at])!r}")
        if stop < 0:
            if len(buffer) - at >= 32:
                raise Malformed("invalid bulk length")
            return -1
        size = _whole(buffer[at + 1 : stop])
        if size is None or not 0 <= size <= self.limits.argument:
            raise Malformed("invalid bulk length")
        end = stop + 2 + size
        if self._taken + size > self.limits.command:
            raise Malformed("too big request")
        if len(buffer) < end + 2:
            self._needed = end + 2 - at
            return -1
        if buffer[end : end + 2] != b"\r\n":
            raise Malformed("expected a line end after an argument")
        self._taken += size
        self._args.append(_text(buffer[stop + 2 : end]))
        self._left -= 1
        return end + 2


def _split(buffer: bytes, start: int, commands: list[list[str]], limits: Limits) -> int:
    """Read as many commands as splitting can; give the position of the first other one."""
    lines = (buffer[start:] if start else buffer).decode("ascii").split("\r\n")
    last, i, sizes, most = len(lines) - 1, 0, _SIZES, min(_SHORT - 1, limits.argument)
    while i < last:
        count = _COUNTS.get(lines[i])
        if count is None or count > limits.arguments:
            break
        end = i + 1 + 2 * count
        if end > last:
            break
        args = lines[i + 2 : end : 2]
        lengths = [*map(len, args)]
        if max(lengths) > most or [sizes[length] for length in lengths] != lines[i + 1 : end : 2]:
            break
        commands.append(args)
        i = end
    if i == last:
        return len(buffer) - len(lines[last])
    return len(buffer) - sum(map(len, lines[i:])) - 2 * (last - i)


def _whole(line: bytes) -> int | None:
    """Parse a whole number of at most ten digits, or give None."""
    digits = line.removeprefix(b"-")
    return int(line) if digits.isdigit() and len(digits) <= 10 else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def split_inline(line: str) -> list[str]:
    """Split an inline command into words; quotes as in redis-cli.

    >>> split_inline('SET "a b" c')
    ['SET', 'a b', 'c']
    """
    import shlex

    try:
        return shlex.split(line) if '"' in line or "'" in line else line.split()
    except ValueError:
        raise Malformed("unbalanced quotes in request") from None


# ---- writing


class Status(str):
    """A simple string reply, such as OK."""

    __slots__ = ()


class Fault(str):
    """An error reply: its code and its message."""

    __slots__ = ()


class Pairs(tuple[Any, ...]):
    """Alternating names and values: a map in version 3, a list in version 2."""

    __slots__ = ()


class Push(tuple[Any, ...]):
    """An unrequested message, such as one from a channel: a push in version 3, a list in version 2."""

    __slots__ = ()


class NoList:
    """The null list: the reply of a blocking command whose timeout ran out."""


OK: Final = Status("OK")
NO_LIST: Final = NoList()


def write(value: Any, version: int = 2) -> str:
    """Write a reply as text; `encode` turns the text into bytes.

    >>> write(["OK", [1, None]])
    '*2\\r\\n$2\\r\\nOK\\r\\n*2\\r\\n:1\\r\\n$-1\\r\\n'
    """
    kind = type(value)
    if kind is str:
        return f"${len(value) if value.isascii() else len(encode(value))}\r\n{value}\r\n"
    if kind is int:
        return f":{value}\r\n"
    if kind is list or kind is tuple:
        return f"*{len(value)}\r\n" + "".join([write(one, version) for one in value])
    return _write_rare(kind, value, version)


def _write_rare(kind: Any, value: Any, version: int) -> str:
    if value is None:
        return "$-1\r\n" if version == 2 else "_\r\n"
    if kind is Status:
        return f"+{value}\r\n"
    if kind is Fault:
        return f"-{str(value).replace(chr(13), chr(32)).replace(chr(10), chr(32))}\r\n"
    if kind is NoList:
        return "*-1\r\n" if version == 2 else "_\r\n"
    if kind is Pairs:
        head = f"*{len(value)}\r\n" if version == 2 else f"%{len(value) // 2}\r\n"
        return head + "".join([write(one, version) for one in value])
    if kind is Push:
        head = "*" if version == 2 else ">"
        return f"{head}{len(value)}\r\n" + "".join([write(one, version) for one in value])
    if isinstance(value, tuple | list):
        return write(list(value), version)
    if isinstance(value, str | bytes):
        return write(str(value) if isinstance(value, str) else _text(value), version)
    raise TypeError(f"{kind} has no form in RESP")


def encode(text: str) -> bytes:
    """Encode a text as bytes, with lone surrogates as the original bytes."""
    return text.encode("utf-8", "surrogateescape")
