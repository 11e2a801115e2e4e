"""SP-3: whether a micro-batch was committed before, and what is no replay."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from pyspark_barnabas.token import NotExactlyOnce, Token, is_committed

LAST = Token("q", 7, 100)


def test_a_token_is_an_offset_with_metadata() -> None:
    assert Token.of(8, LAST.metadata) == LAST
    for metadata in ("", "{}", "[1]", '{"query": "q", "rows": "x"}'):
        with pytest.raises(CorruptData, match="not a query's token"):
            Token.of(8, metadata)


def test_the_next_batch_is_new_and_the_last_one_is_committed() -> None:
    assert not is_committed(None, Token("q", 0, 5), "id")
    assert not is_committed(LAST, Token("q", 8, 5), "id")
    assert is_committed(LAST, LAST, "id")


def test_the_user_may_say_what_is_committed() -> None:
    assert not is_committed(None, Token("q", 3, 5), "id", begins=3)
    assert is_committed(None, Token("q", 3, 5), "id", begins=4)
    assert is_committed(LAST, Token("q", 7, 99), "id", begins=8)
    assert not is_committed(LAST, Token("q", 8, 5), "id", begins=8)
    assert not is_committed(LAST, Token("q", 10, 5), "id", begins=10)
    assert is_committed(LAST, LAST, "id", begins=7), "it said so once, and was restarted"
    with pytest.raises(NotExactlyOnce, match="has no progress"):
        is_committed(None, Token("q", 4, 5), "id", begins=3)
    with pytest.raises(NotExactlyOnce, match="batch 7 is the last"):
        is_committed(LAST, Token("q", 11, 5), "id", begins=10)
    with pytest.raises(NotExactlyOnce, match="belongs to query q"):
        is_committed(LAST, Token("other", 3, 5), "id", begins=8)


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [
        (None, Token("q", 3, 5), "exactlyOnceBegins=3"),
        (LAST, Token("q", 9, 5), "batch 7 is the last .* exactlyOnceBegins=9"),
        (LAST, Token("other", 8, 5), "belongs to query q"),
        (LAST, Token("other", 7, 100), "belongs to query q"),
        (LAST, Token("q", 6, 100), "batch 7 is committed already"),
        (LAST, Token("q", 7, 99), "committed with 100 rows and now has 99"),
    ],
)
def test_what_is_no_replay_is_refused(found: Token | None, wanted: Token, said: str) -> None:
    with pytest.raises(NotExactlyOnce, match=said):
        is_committed(found, wanted, "id")
