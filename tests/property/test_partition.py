"""The partition machine under any order of events keeps its promises."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.cluster.image import PartitionImage
from barnabas.replication.follower_state import FollowerFetch
from barnabas.replication.partition import Advance, Effect, Partition
from barnabas.types import TopicPartition
from tests.kit.effort import examples

LEADER = 0
FOLLOWERS = (1, 2)


class Leadership(RuleBasedStateMachine):
    """One leader, two followers that fetch what they like, and a controller that re-elects."""

    @initialize(min_insync=st.integers(1, 4), isr=st.sets(st.sampled_from(FOLLOWERS)))
    def begin(self, min_insync: int, isr: set[int]) -> None:
        self.partition = Partition(TopicPartition("t", 0), LEADER, min_insync_replicas=min_insync)
        self.epoch = -1
        self.now_ms = 0
        self.log_end = 0
        self.seen = 0  # the highest watermark that was announced
        self.fetched_in_epoch: dict[int, int] = {}
        self.elect(isr)

    @rule(isr=st.sets(st.sampled_from(FOLLOWERS)))
    def elect(self, isr: set[int]) -> None:
        self.epoch += 1
        self.isr = (LEADER, *sorted(isr))
        self.fetched_in_epoch = {}
        state = PartitionImage(LEADER, self.epoch, self.isr, (LEADER, *FOLLOWERS), self.epoch, 1)
        self.announced(self.partition.become_leader(state, self.log_end))

    @rule(records=st.integers(0, 5))
    def append(self, records: int) -> None:
        self.log_end += records
        self.announced(self.partition.on_appended(self.log_end))

    @rule(follower=st.sampled_from(FOLLOWERS), share=st.floats(0, 1), pause_ms=st.integers(0, 9))
    def fetch(self, follower: int, share: float, pause_ms: int) -> None:
        self.now_ms += pause_ms
        offset = int(self.log_end * share)
        self.fetched_in_epoch[follower] = offset
        self.announced(
            self.partition.on_fetch(FollowerFetch(follower, offset, self.epoch), self.now_ms)
        )

    def announced(self, effects: list[Effect]) -> None:
        for decision in effects:
            assert isinstance(decision, Advance), "no broker lives that could join"
            assert decision.high_watermark > self.seen, "an advance is upwards"
            self.seen = decision.high_watermark
            assert len(self.isr) >= min(self.partition.min_insync_replicas, 3)
            for replica in self.isr:
                if replica != LEADER:
                    assert self.fetched_in_epoch[replica] >= decision.high_watermark

    @invariant()
    def the_watermark_is_the_announced_one(self) -> None:
        assert self.partition.high_watermark == self.seen <= self.log_end

    @invariant()
    def it_is_as_high_as_it_may_be(self) -> None:
        """No record stays hidden that every replica in sync has."""
        if self.partition.has_enough_in_sync():
            ends = [self.fetched_in_epoch.get(one, -1) for one in self.isr if one != LEADER]
            assert self.partition.high_watermark >= min([self.log_end, *ends])


Leadership.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None
)
TestLeadership = Leadership.TestCase
