"""Commits: of members of the generation, or of any client while there are none."""

from __future__ import annotations

import pytest

from barnabas.coordinator.commits import check_commit, check_transactional
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.member import Member
from barnabas.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

NO_MEMBER = (-1, "", None)


def group_in(state: GroupState) -> Group | None:
    group = Group("g")
    if state is GroupState.DEAD:
        return None
    if state is not GroupState.EMPTY:
        group.add(Member("g", "a", None, (("range", b""),)))
        group.add(Member("g", "i-1", "i", (("range", b""),)))
        group.generation = 2
    group.state = state
    return group


CASES = [
    (GroupState.DEAD, NO_MEMBER, None, None),
    (GroupState.DEAD, (1, "a", None), IllegalGeneration, UnknownMemberId),
    (GroupState.EMPTY, NO_MEMBER, None, None),
    (GroupState.EMPTY, (-1, "a", None), None, None),
    (GroupState.EMPTY, (1, "a", None), UnknownMemberId, UnknownMemberId),
    (GroupState.STABLE, NO_MEMBER, UnknownMemberId, None),
    (GroupState.STABLE, (2, "a", None), None, None),
    (GroupState.STABLE, (1, "a", None), IllegalGeneration, IllegalGeneration),
    (GroupState.STABLE, (-1, "a", None), IllegalGeneration, IllegalGeneration),
    (GroupState.STABLE, (2, "b", None), UnknownMemberId, UnknownMemberId),
    (GroupState.STABLE, (2, "i-1", "i"), None, None),
    (GroupState.STABLE, (2, "i-0", "i"), FencedInstanceId, FencedInstanceId),
    (GroupState.STABLE, (2, "a", "j"), UnknownMemberId, UnknownMemberId),
    (GroupState.PREPARING, (2, "a", None), None, None),
    (GroupState.COMPLETING, (2, "a", None), RebalanceInProgress, None),
    (GroupState.COMPLETING, (1, "a", None), IllegalGeneration, IllegalGeneration),
]


@pytest.mark.parametrize(("state", "who", "plain", "transactional"), CASES)
def test_every_case(
    state: GroupState,
    who: tuple[int, str, str | None],
    plain: type[KafkaError] | None,
    transactional: type[KafkaError] | None,
) -> None:
    """CO-4: a stale member's commit would take back what the new owner has read."""
    generation, member_id, instance_id = who
    request = OffsetCommitRequest(
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
    )
    assert check_commit(group_in(state), request) is plain
    in_transaction = TxnOffsetCommitRequest(
        generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )
    assert check_transactional(group_in(state), in_transaction) is transactional
