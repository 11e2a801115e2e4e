"""Mutations of the machines that replicate, and of the controller."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_PARTITION = partial(
    Mutation,
    "barnabas/replication/partition.py",
    tests=("unit/replication/test_partition.py", "property/test_partition.py"),
)
_FOLLOWER = partial(
    Mutation,
    "barnabas/replication/follower.py",
    tests=("unit/replication/test_follower.py", "property/test_follower.py"),
)
_REMOTE = partial(
    Mutation,
    "barnabas/replication/follower_state.py",
    tests=("unit/replication/test_follower_state.py", "unit/replication/test_partition.py"),
)
_ELECTION = partial(
    Mutation,
    "barnabas/controller/leader_election.py",
    tests=(
        "unit/controller/test_leader_election.py",
        "unit/controller/test_broker_changes.py",
        "unit/controller/test_preferred_leader.py",
    ),
)
_LOST_LOG_ENDS = partial(
    Mutation,
    "barnabas/controller/lost_log_ends.py",
    tests=("unit/controller/test_lost_log_ends.py", "unit/controller/test_controller.py"),
)
_ISR = partial(Mutation, "barnabas/controller/isr.py", tests=("unit/controller/test_isr.py",))
_BROKER_CHANGES = partial(
    Mutation,
    "barnabas/controller/broker_changes.py",
    tests=("unit/controller/test_broker_changes.py", "unit/controller/test_controller.py"),
)
_ROLE_CHANGES = partial(
    Mutation,
    "barnabas/broker/partitions/role_changes.py",
    tests=("unit/broker/partitions/test_replicas.py",),
)

MUTATIONS = (
    _ROLE_CHANGES("if is_other or ", "if "),
    _ROLE_CHANGES(
        "        if not may_be_same_topic(replica.partition.topic_id, state.topic_id):\n",
        "        if False:\n",
    ),
    _PARTITION("replica in self.maximal_isr\n", "replica in self.isr\n"),
    _PARTITION(
        "or (self._keeps_up(replica) and self._is_eligible(replica, follower))",
        "or False",
    ),
    _PARTITION(
        "if smallest <= self.high_watermark or not self.has_enough_in_sync():",
        "if smallest <= self.high_watermark:",
    ),
    _PARTITION(
        "high_watermark = min(log_end_offset, leader_high_watermark)",
        "high_watermark = leader_high_watermark",
    ),
    _PARTITION(
        "follower.log_end_offset >= max(self.high_watermark, self.epoch_start_offset)",
        "follower.log_end_offset >= self.high_watermark",
    ),
    _PARTITION(
        "if fetch.broker_epoch < newest:",
        "if fetch.broker_epoch < follower.broker_epoch:",
    ),
    _PARTITION(
        "self._followers = {}\n            self.log_end_offset = self.epoch_start_offset",
        "self.log_end_offset = self.epoch_start_offset",
    ),
    _PARTITION("if state.partition_epoch <= self.partition_epoch:", "if False:"),
    _PARTITION("if proposal != self._proposed:\n            return []", "pass"),
    _PARTITION("or answer.partition_epoch < self.partition_epoch\n", ""),
    _PARTITION(
        "count >= self._min_insync_replicas or count >= len(self.replicas)",
        "count >= self.min_insync_replicas",
    ),
    _PARTITION(
        "self.high_watermark = min(self.high_watermark, log_end_offset)",
        "pass",
    ),
    _PARTITION(
        "if leader_epoch < self.leader_epoch:\n            raise FencedLeaderEpoch(",
        "if False:\n            raise FencedLeaderEpoch(",
    ),
    _FOLLOWER(
        "return Aligned(min(own_end, end), is_final=False)",
        "return Aligned(min(leaders.end_offset, end), is_final=False)",
    ),
    _FOLLOWER(
        "return Aligned(min(own_end, leaders.end_offset, end), is_final=True)",
        "return Aligned(min(leaders.end_offset, end), is_final=True)",
    ),
    _FOLLOWER(
        "if partition.is_leader or self._counted_epoch != partition.leader_epoch:",
        "if partition.is_leader:",
    ),
    _FOLLOWER("if sent == self._diverged:", "if False:"),
    _FOLLOWER("if latest < end:", "if False:"),
    _FOLLOWER("if offset < self._log.log_start_offset:", "if False:"),
    _FOLLOWER("if not self._is_current(sent):", "if False:"),
    _REMOTE(
        "elif offset >= self.leader_end_at_fetch:\n            self.caught_up_at_ms = "
        "max(self.caught_up_at_ms, self.fetched_at_ms)",
        "elif offset >= self.leader_end_at_fetch:\n            self.caught_up_at_ms = now_ms",
    ),
    _REMOTE("self.leader_end_at_fetch = leader_end", "pass"),
    _ELECTION(
        "candidates = partition.replicas if is_new else partition.isr",
        "candidates = partition.replicas",
    ),
    _ELECTION("partition.leader_epoch + 1,", "partition.leader_epoch,"),
    _ELECTION(
        "if each in live and each not in offline]",
        "if each in live]",
    ),
    _ELECTION("isr or partition.isr, controller_epoch", "isr, controller_epoch"),
    _ELECTION("    if preferred not in partition.isr:\n        return None\n", ""),
    _LOST_LOG_ENDS(
        "leader = partition.leader if partition.leader in isr else NO_LEADER",
        "leader = partition.leader",
    ),
    _LOST_LOG_ENDS(
        "return last is not None and last.may_have_lost",
        "return last is not None",
    ),
    _LOST_LOG_ENDS(
        "if any(replica not in ends for replica in partition.replicas):",
        "if not ends:",
    ),
    _LOST_LOG_ENDS(
        "key=lambda replica: ends[replica][:2]", "key=lambda replica: ends[replica].end_offset"
    ),
    _ISR("NEVER_LED < before.partition_epoch < version", "NEVER_LED < version"),
    _ISR(
        "(state.leader, state.leader_epoch) == (before.leader, before.leader_epoch)",
        "state.leader == before.leader",
    ),
    _ISR("    if proposal.leader_epoch < before.leader_epoch:\n", "    if False:\n"),
    _ISR("    if proposal.partition_epoch < before.partition_epoch:\n", "    if False:\n"),
    _BROKER_CHANGES(
        "if broker_id not in partition.isr or partition.leader == NO_LEADER:", "if False:"
    ),
)
