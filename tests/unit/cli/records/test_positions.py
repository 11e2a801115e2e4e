"""Where `consume` begins: what its options mean together."""

from __future__ import annotations

import re

import click
import pytest

from barnabas.cli.records.positions import Start, Subscribed, beginning, start_of


@pytest.mark.parametrize(
    ("text", "from_beginning", "expected"),
    [
        (None, False, "latest"),
        (None, True, "earliest"),
        ("earliest", False, "earliest"),
        ("latest", False, "latest"),
        ("0", False, 0),
        ("-5", False, -5),
    ],
)
def test_where_to_begin(text: str | None, from_beginning: bool, expected: str | int) -> None:
    """UX-2: from now on, unless it is said otherwise."""
    assert beginning(text, from_beginning, (0,)) == expected


@pytest.mark.parametrize(
    ("text", "from_beginning", "partitions", "problem"),
    [
        ("soon", False, (0,), "soon"),
        ("--5", False, (0,), "--5"),
        ("\u0661", False, (0,), "not a number"),
        ("9" * 19, False, (0,), "not a number"),
        ("1", True, (0,), "cannot be combined"),
        ("-0x5", False, (), "not a number"),
        ("1", False, (), "needs --partition"),
    ],
)
def test_what_is_no_beginning(
    text: str, from_beginning: bool, partitions: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(click.UsageError, match=problem):
        beginning(text, from_beginning, partitions)


def test_a_topic_is_read_whole_or_in_a_group() -> None:
    assert start_of("t", None, None, (), "latest") == Start("t", (), "latest")
    assert start_of("t", None, None, (2,), 7) == Start("t", (2,), 7)
    assert start_of("t", None, "g", (), "latest") == Subscribed(("t",))
    assert start_of(None, "t.*", "g", (), "latest") == Subscribed(re.compile("t.*"))
    with pytest.raises(click.UsageError, match="--partition"):
        start_of("t", None, "g", (0,), "latest")
    with pytest.raises(click.UsageError, match="regular expression"):
        start_of(None, "t[", "g", (), "latest")
