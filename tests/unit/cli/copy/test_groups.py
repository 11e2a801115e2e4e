"""A group continues with the record that it would have read next."""

from __future__ import annotations

from barnabas.cli.copy.groups import plan_for_group
from barnabas.cli.copy.offset_map import OffsetMap, Run
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.types import TopicPartition

NAME = TopicPartition("orders", 0)
MAPS = {NAME: OffsetMap([Run(10, 0, 5), Run(20, 6, 5)], position=30)}


def at(offset: int, metadata: str = "") -> dict[TopicPartition, OffsetAndMetadata]:
    return {NAME: OffsetAndMetadata(offset, metadata=metadata)}


def test_an_offset_is_translated_and_keeps_its_metadata() -> None:
    plan = plan_for_group("readers", at(12, "here"), {}, MAPS)
    assert (plan.offsets, plan.notes) == (at(2, "here"), ())


def test_an_offset_in_a_gap_becomes_that_of_the_next_record() -> None:
    assert plan_for_group("readers", at(15), {}, MAPS).offsets == at(6)
    assert plan_for_group("readers", at(3), {}, MAPS).offsets == at(0)


def test_an_offset_at_the_end_becomes_the_end() -> None:
    assert plan_for_group("readers", at(30), {}, MAPS).offsets == at(11)


def test_records_that_are_not_copied_are_never_skipped() -> None:
    plan = plan_for_group("readers", at(31), {}, MAPS)
    assert plan.offsets == {}
    assert plan.notes == ("orders-0 is copied up to 30, but was read to 31",)


def test_no_offset_is_set_back() -> None:
    ahead = plan_for_group("readers", at(12), at(4), MAPS)
    assert (ahead.offsets, ahead.notes) == ({}, ("orders-0 stays at 4, after 2",))
    equal = plan_for_group("readers", at(12), at(2), MAPS)
    assert (equal.offsets, equal.equal, equal.notes) == ({}, 1, ())
    assert plan_for_group("readers", at(12), at(1), MAPS).offsets == at(2)


def test_partitions_that_are_not_copied_are_left_out() -> None:
    other = {TopicPartition("other", 0): OffsetAndMetadata(1)}
    assert plan_for_group("readers", other, {}, MAPS).offsets == {}
