"""Names and numbers of levels."""

from __future__ import annotations

from barnabas_formats.levels import BY_NAME, BY_NUMBER, BY_SEVERITY, LEVELS, NAMES


def test_each_name_and_number_is_one_level() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {*BY_NAME.values()} == {*BY_NUMBER.values()} == {*LEVELS}
    assert {*BY_SEVERITY.values()} < {*LEVELS}
    assert (BY_NUMBER[10], BY_NUMBER[60]) == ("TRACE", "FATAL")


def test_words_that_are_levels_in_few_formats_are_none_elsewhere() -> None:
    assert {"LOG", "NOTE", "SYSTEM", "*"} <= {*BY_NAME} - {*NAMES}
