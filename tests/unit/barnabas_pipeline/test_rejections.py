"""What a run and its page say when many records were rejected (SP-2, UX-4)."""

from __future__ import annotations

import pytest

from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.rejections import complaint, many_rejected, nothing_known

LETTERS = [
    DeadLetters("bad time", 3, [("access.log, line 7", "192.0.2.x - - [32/May")]),
    DeadLetters("not UTF-8", 1, []),
]


@pytest.mark.parametrize(("valid", "is_many"), [(16, False), (15, True), (0, True)])
def test_more_than_a_fifth_is_many(valid: int, is_many: bool) -> None:
    found = many_rejected(Accounts(99, valid, 4, 95 - valid), LETTERS)
    assert (found is not None) == is_many
    if found:
        assert found.reasons == [("bad time", 3), ("not UTF-8", 1)]
        assert (found.lines, found.of) == (4, valid + 4)
        assert (found.place, found.sample) == LETTERS[0].samples[0]


def test_ux_4_a_run_of_which_nothing_is_valid_has_failed() -> None:
    assert complaint(Accounts(), []) is None
    assert complaint(Accounts(5, 1, 4, 0), LETTERS) is None
    assert complaint(Accounts(4, 0, 4, 0), LETTERS) == (
        "none of 4 records is valid: 3 bad time, 1 not UTF-8; such as access.log, line 7:"
        " 192.0.2.x - - [32/May"
    )


def test_sp_2_a_run_whose_entries_have_no_known_format_has_failed() -> None:
    assert nothing_known(0, 0, []) is None
    assert nothing_known(5, 4, [("a.log, line 1", "x")]) is None
    said = nothing_known(5, 5, [("a.log, line 1", "x"), ("a.log, line 2", "y")])
    assert said is not None
    assert said.startswith("no known format fits any of 5 records; such as a.log, line 1: x; ")
