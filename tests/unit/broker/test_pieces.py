"""A long request is handled in pieces, and answered as a whole (UX-4)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.context import Context
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.pieces import Lists, in_pieces, pieces_of
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeletePartitionResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
    OffsetDeleteTopicResponse,
)

LISTS = Lists(("topics", "partitions"), ("topics", "partitions"))
CONTEXT = cast(Context, None)


def request_of(sizes: list[int]) -> OffsetDeleteRequest:
    """For topics with so many partitions each."""
    return OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteTopic(
                name=f"t{at}",
                partitions=[OffsetDeletePartition(partition_index=one) for one in range(size)],
            )
            for at, size in enumerate(sizes)
        ],
    )


def answer_to(request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteTopicResponse(
                name=topic.name,
                partitions=[
                    OffsetDeletePartitionResponse(partition_index=one.partition_index)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(2, 9))
def test_pieces_are_short_and_answer_as_the_whole_does(sizes: list[int], most: int) -> None:
    asked: list[int] = []

    def handle(_: Context, piece: OffsetDeleteRequest) -> Outcome:
        assert piece.group_id == "g"
        asked.append(sum(1 + len(topic.partitions) for topic in piece.topics))
        return answer_to(piece)

    request = request_of(sizes)
    outcome: Any = in_pieces(CONTEXT, request, LISTS, handle, most)
    if isinstance(outcome, Hold):
        outcome = asyncio.run(cast(Any, outcome.until))
    assert outcome == answer_to(request_of(sizes))
    # A part of a topic that is long itself has its topic in it, besides.
    assert max(asked) <= most + 1


def test_a_short_request_is_handled_at_once() -> None:
    request = request_of([1, 1])
    assert in_pieces(CONTEXT, request, LISTS, lambda _, one: answer_to(one)) == answer_to(request)


def test_others_have_a_turn_between_pieces_and_the_connection_waits() -> None:
    turns: list[str] = []

    def handle(_: Context, piece: OffsetDeleteRequest) -> Outcome:
        asyncio.get_running_loop().call_soon(turns.append, "another")
        turns.append("piece")
        return answer_to(piece)

    outcome = in_pieces(CONTEXT, request_of([1] * 6), LISTS, handle, 4)
    assert isinstance(outcome, Hold)  # what the connection sends next is not read meanwhile
    asyncio.run(cast(Any, outcome.until))
    assert turns == ["piece", "another"] * 3


def test_an_error_of_the_whole_is_the_answer_and_nothing_follows() -> None:
    asked: list[int] = []

    def handle(_: Context, piece: OffsetDeleteRequest) -> Outcome:
        asked.append(len(piece.topics))
        return OffsetDeleteResponse(error_code=30 if len(asked) == 2 else 0)

    outcome: Any = in_pieces(CONTEXT, request_of([0] * 9), LISTS, handle, 3)
    assert asyncio.run(outcome.until).error_code == 30
    assert len(asked) == 2


def test_a_list_that_is_null_is_one_piece() -> None:
    from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest

    request = ElectLeadersRequest(topic_partitions=None)
    (piece,) = pieces_of(request, ("topic_partitions", "partitions"), 3)
    assert piece == request
