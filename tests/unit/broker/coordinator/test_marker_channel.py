"""How the markers for another broker are put into requests."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinator.marker_append import Ending
from barnabas.broker.coordinator.marker_channel import WaitingMarker, fitting, request_of, split
from barnabas.protocol.api import WRITE_TXN_MARKERS
from barnabas.protocol.frame import encode_request
from barnabas.types import TopicPartition

_ENDING = Ending(7, 0, True, 1)
_MOST_BYTES = 70 * 1024
_MOST_PARTITIONS = 2_000


def waiting(*partitions: TopicPartition) -> list[WaitingMarker]:
    return [WaitingMarker(_ENDING, some, lambda _: None, size) for some, size in split(partitions)]


def size_of(markers: list[WaitingMarker]) -> int:
    request = request_of(markers)
    return sum(map(len, encode_request(WRITE_TXN_MARKERS, 1, 1, "c", request)))


@pytest.mark.parametrize(
    ("topics", "each"), [(10_000, 1), (1, 50_000), (300, 40)], ids=["topics", "one topic", "both"]
)
def test_a_large_transaction_takes_several_requests_pr_7(topics: int, each: int) -> None:
    """PR-7: of one request a broker reads what its limit allows, and appends it in one turn."""
    names = [f"{'topic' * 40}-{number}" for number in range(topics)]
    partitions = [TopicPartition(name, number) for name in names for number in range(each)]
    markers = waiting(*partitions)
    assert [one for marker in markers for one in marker.partitions] == partitions
    while markers:
        count = fitting(markers)
        assert size_of(markers[:count]) <= _MOST_BYTES
        assert sum(len(marker.partitions) for marker in markers[:count]) <= _MOST_PARTITIONS
        del markers[:count]


def test_small_transactions_share_a_request_pr_7() -> None:
    markers = [one for number in range(600) for one in waiting(TopicPartition("t", number))]
    assert fitting(markers) == 600


def test_a_marker_without_partitions_is_one_too() -> None:
    (marker,) = waiting()
    assert marker.partitions == []
    assert fitting([marker]) == 1
