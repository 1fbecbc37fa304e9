"""A stamp tells whether what was made with code is still current (`qmodel/conformance/code_digest.py`)."""

from __future__ import annotations

from pathlib import Path

from qmodel.conformance.code_digest import Stamp


def test_a_stamp_is_current_as_long_as_its_code_has_the_same_names_and_contents(tmp_path: Path) -> None:
    code = tmp_path / "ops" / "bare.lua"
    code.parent.mkdir()
    code.write_text("local bare = {}\n", encoding="utf-8")
    stamp = Stamp(tmp_path / "stamp", tmp_path, ("**/*.lua",))
    assert not stamp.is_current()
    stamp.renew()
    (tmp_path / "notes.txt").write_text("not code", encoding="utf-8")
    assert stamp.is_current()
    code.write_text("local bare = {1}\n", encoding="utf-8")
    assert not stamp.is_current()
    stamp.renew()
    code.rename(code.with_name("plain.lua"))
    assert not stamp.is_current()
