"""Text from outside, as it may stand in a log or on a terminal."""

from __future__ import annotations

import pytest

from barnabas.printable import has_control_characters, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("Grüße, 注文", "Grüße, 注文"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b]0;title\x07\x9b2J", r"\x1b]0;title\x07\x9b2J"),
        ("a\u2028b\u202e", r"a\u2028b\u202e"),  # a line end, and writing from right to left
        ("\ud800", r"\ud800"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("name", "has_some"),
    [
        ("a\u00a0b", False),  # a space that does not break
        ("Grüße \U0001f469\u200d\U0001f4bb", False),
        ("\ue000", False),  # for private use
        ("a\nb", True),
        ("a\x1b[2J", True),
        ("a\u2029b", True),
        ("a\u202eb", True),
        ("\udc80", True),
    ],
)
def test_only_control_characters_are_refused_in_names(name: str, has_some: bool) -> None:
    assert has_control_characters(name) is has_some
