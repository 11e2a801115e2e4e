"""The operating system's entropy: numbers below a limit, and ids that Kafka accepts."""

from __future__ import annotations

from collections import Counter

import pytest

from barnabas.clock import SystemRandom
from barnabas.types import uuid_text


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 255, 256, 257])
def test_every_number_below_the_limit_comes_and_no_other(limit: int) -> None:
    random = SystemRandom()
    found = {random.below(limit) for _ in range(40 * limit)}
    assert found <= set(range(limit))
    # Each is missed with a probability of e^-40.
    assert len(found) == limit


def test_no_number_is_preferred() -> None:
    random = SystemRandom()
    found = Counter(random.below(5) for _ in range(10_000))
    # Eight standard deviations: 40 each.
    assert all(abs(count - 2_000) < 320 for count in found.values())


def test_large_limits() -> None:
    random = SystemRandom()
    found = [random.below(2**31 - 1) for _ in range(64)]
    assert all(0 <= number < 2**31 - 1 for number in found)
    assert max(found) > 2**28


def test_ids_are_version_4_and_do_not_look_like_options() -> None:
    ids = [SystemRandom().uuid() for _ in range(1_000)]
    assert {(each[6] >> 4, each[8] >> 6) for each in ids} == {(4, 2)}
    assert len(set(ids)) == len(ids)
    assert not any(uuid_text(each).startswith("-") for each in ids)
