"""Which lines of a Lua chunk hold code that can run, read from its bytecode."""

from __future__ import annotations

import re
from typing import Any, Final

import lupa.lua51 as lua51


def active_lines(source: str) -> frozenset[int]:
    """Return the lines of a chunk that hold code which can run.

    The chunk is compiled, not run, and its bytecode is read: `debug.getinfo` with `L` knows only functions that exist
    already. The `return` that Lua adds at the end of each function counts only where it can be reached.
    """
    runtime: Any = lua51.LuaRuntime(encoding=None)
    dump = runtime.eval("function(s) return string.dump(assert(loadstring(s))) end")
    body = re.sub(r"\A#![^\n]*", "", source)
    return frozenset(_Bytecode(dump(body.encode())).lines)


class _Bytecode:
    """Reads the 64-bit, little-endian bytecode of Lua 5.1 that `string.dump` gives."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 12
        self.lines: set[int] = set()
        self._function()

    def _int(self) -> int:
        self.at += 4
        return int.from_bytes(self.raw[self.at - 4 : self.at], "little")

    def _skip_string(self) -> None:
        self.at += 8 + int.from_bytes(self.raw[self.at : self.at + 8], "little")

    def _ints(self) -> list[int]:
        return [self._int() for _ in range(self._int())]

    def _function(self) -> None:
        self._skip_string()
        self.at += 8 + 4
        code = self._ints()
        self._skip_constants()
        for _ in range(self._int()):
            self._function()
        line_of = self._ints()
        for _ in range(self._int()):
            self._skip_string()
            self.at += 8
        for _ in range(self._int()):
            self._skip_string()
        self.lines |= {line_of[pc] for pc in _reached(code)}

    def _skip_constants(self) -> None:
        for _ in range(self._int()):
            kind = self.raw[self.at]
            self.at += 1
            if kind == 4:
                self._skip_string()
            else:
                self.at += {0: 0, 1: 1, 3: 8}[kind]


_JUMP: Final = 22
_LOADBOOL: Final = 2
_RETURN: Final = 30
_FORLOOP: Final = 31
_FORPREP: Final = 32
_SETLIST: Final = 34
# EQ, LT, LE, TEST, TESTSET, TFORLOOP: they may skip the next instruction.
_TESTS: Final = frozenset((23, 24, 25, 26, 27, 33))


def _reached(code: list[int]) -> set[int]:
    """Return the positions that control can reach from the first instruction."""
    reached: set[int] = set()
    left = [0]
    while left:
        pc = left.pop()
        if pc not in reached:
            reached.add(pc)
            left.extend(_successors(code, pc))
    return reached


def _successors(code: list[int], pc: int) -> list[int]:
    word = code[pc]
    operation, target = word & 0x3F, pc + 1 + (word >> 14) - 131071
    if operation == _RETURN:
        return []
    if operation in (_JUMP, _FORPREP):
        return [target]
    if operation == _FORLOOP:
        return [pc + 1, target]
    if operation in _TESTS:
        return [pc + 1, pc + 2]
    if operation == _LOADBOOL and word >> 14 & 0x1FF:
        return [pc + 2]
    # For a long list the word after the instruction holds its count.
    return [pc + 2 if operation == _SETLIST and not word >> 14 & 0x1FF else pc + 1]
