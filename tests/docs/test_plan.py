"""The picture of the rooms shows what the table says, and its boxes and arrows can be told apart."""

from __future__ import annotations

import re
from itertools import pairwise

from tools.architecture import picture
from tools.architecture.layout import laid_out, needed
from tools.architecture.rooms import FLOORS, ROOMS
from tools.docs import architecture


def test_an_arrow_that_follows_from_others_is_not_needed() -> None:
    assert needed({"a": ["b", "c"], "b": ["c"], "c": []}) == [("a", "b"), ("b", "c")]
    assert needed({"a": ["b", "c"], "b": [], "c": []}) == [("a", "b"), ("a", "c")]


def test_arrows_that_need_not_cross_do_not() -> None:
    found = laid_out([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")], 10)
    assert found.rows in ([["a", "b"], ["d", "c"]], [["b", "a"], ["c", "d"]])


def test_boxes_of_a_row_do_not_overlap() -> None:
    found = laid_out([["a"], ["b", "c", "d"], ["e"]], [("a", "c"), ("b", "e"), ("c", "e"), ("d", "e"), ("a", "e")], 10)
    for row in found.rows:
        assert all(found.middles[two] - found.middles[one] >= 10 - 1e-6 for one, two in pairwise(row))
    assert min(found.middles.values()) >= 5 - 1e-6


def test_the_picture_shows_every_room_and_floor_within_its_frame() -> None:
    text = picture.svg()
    width, height = (int(found) for found in re.findall(r'svg" viewBox="0 0 (\d+) (\d+)"', text)[0])
    for name in ROOMS:
        assert f">{name}</text>" in text
    assert text.count('class="floor"') >= len(FLOORS)
    assert max(float(x) for x in re.findall(r'\bx="([\d.]+)"', text)) <= width
    assert max(float(y) for y in re.findall(r'\by="([\d.]+)"', text)) <= height


def test_the_page_has_a_sentence_for_each_room() -> None:
    text = architecture.markdown()
    assert all(f"| `{name}` | {room.holds} |" in text for name, room in ROOMS.items())
