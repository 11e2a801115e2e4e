"""What members send beyond the largest batch of the offsets topic is refused, as in Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import InvalidCommitOffsetSize, UnknownServerError
from tests.kit.broker.group_nodes import grouped
from tests.kit.broker.tallies import run

_MANY_BYTES = 5 * 1024 * 1024


def test_an_assignment_beyond_the_largest_batch_is_refused_gc_2(tmp_path: Path) -> None:
    """UNKNOWN_SERVER_ERROR, and nothing has happened: with a smaller one the group is stable."""

    async def test(directory: Path) -> None:
        async with grouped(directory) as node:
            node.take(1)
            member_id = await node.joined()
            refused: Any = node.sync(member_id, bytes(_MANY_BYTES))
            assert refused.error_code == UnknownServerError.code
            assert node.replica.log.log_end_offset == 0
            synced: Any = node.sync(member_id, bytes(500_000))
            node.follow()
            assert synced.at_once().assignment == bytes(500_000)

    run(test, tmp_path)


@pytest.mark.thorough
def test_a_commit_beyond_the_largest_batch_is_refused_gc_3(tmp_path: Path) -> None:
    """INVALID_COMMIT_OFFSET_SIZE for each partition: half of a commit would be worse than none."""

    async def test(directory: Path) -> None:
        async with grouped(directory) as node:
            node.take(1)
            count = _MANY_BYTES // 100
            refused: Any = node.commit(1, count, "m" * 100)
            assert refused.error_code == InvalidCommitOffsetSize.code
            assert node.replica.log.log_end_offset == 0
            committed: Any = node.commit(1, 1_000, "m" * 100)
            node.follow()
            (topic,) = committed.at_once().topics
            assert {each.error_code for each in topic.partitions} == {0}

    run(test, tmp_path)
