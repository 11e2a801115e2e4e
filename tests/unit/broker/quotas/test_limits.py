"""Which limit holds for a client, and with whom it is shared."""

from __future__ import annotations

import pytest

from barnabas.broker.quotas.entity import Entity
from barnabas.broker.quotas.limits import Limits

ALL = "<default>"

PLACES = [
    (Entity("u", "c"), Entity("u", "c")),
    (Entity("u", ALL), Entity("u", "c")),
    (Entity("u"), Entity("u")),
    (Entity(ALL, "c"), Entity("u", "c")),
    (Entity(ALL, ALL), Entity("u", "c")),
    (Entity(ALL), Entity("u")),
    (Entity("", "c"), Entity("", "c")),
    (Entity("", ALL), Entity("", "c")),
]
"""Kafka's order, and by whom the limit is shared."""


@pytest.mark.parametrize("strongest", range(len(PLACES)))
def test_se_5_the_most_specific_place_wins(strongest: int) -> None:
    limits = Limits()
    for number, (place, _) in enumerate(PLACES):
        if number >= strongest:
            limits.set(place, float(number))
    assert limits.of("u", "c") == (PLACES[strongest][1], float(strongest))


def test_se_5_without_a_matching_place_there_is_no_limit() -> None:
    limits = Limits()
    for place in (Entity("v", "c"), Entity("v"), Entity("", "d"), Entity(ALL, "d")):
        limits.set(place, 1.0)
    assert limits.of("u", "c") is None
    limits.set(Entity("u"), 5.0)
    limits.set(Entity("u"), None)
    assert limits.of("u", "c") is None


def test_se_5_a_client_without_an_id_has_the_limits_of_its_user_alone() -> None:
    limits = Limits()
    limits.set(Entity("", ALL), 1.0)
    limits.set(Entity("u", ALL), 2.0)
    assert limits.of("u", "") is None
    limits.set(Entity(ALL), 3.0)
    assert limits.of("u", "") == (Entity("u"), 3.0)
