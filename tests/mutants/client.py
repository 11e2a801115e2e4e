"""Mutations of the client."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_FETCHED = partial(
    Mutation, "barnabas/client/consumer/fetched.py", tests=("unit/client/consumer/test_fetched.py",)
)
_VIEW = partial(Mutation, "barnabas/client/view.py", tests=("unit/client/test_view.py",))
_ASSIGNORS = partial(
    Mutation,
    "barnabas/client/consumer/assignors.py",
    tests=("unit/client/consumer/test_assignors.py", "property/test_assignors.py"),
)
_MURMUR2 = partial(
    Mutation,
    "barnabas/client/producer/murmur2.py",
    tests=("unit/client/producer/test_murmur2.py", "unit/client/producer/test_partitioner.py"),
)
_QUEUE_TESTS = ("unit/client/producer/test_accumulator.py", "property/test_accumulator.py")
_ACCUMULATOR = partial(Mutation, "barnabas/client/producer/accumulator.py", tests=_QUEUE_TESTS)
_QUEUE = partial(Mutation, "barnabas/client/producer/partition_queue.py", tests=_QUEUE_TESTS)
_RETRY_LOG = partial(
    Mutation, "barnabas/client/retry_log.py", tests=("unit/client/test_retry_log.py",)
)

MUTATIONS = (
    _FETCHED("if record.offset >= self.offset:", "if True:"),
    _FETCHED(
        "if header.last_offset < self.offset:",
        "if False:",
        why_it_survives="it saves work alone: records in front of the offset are left out later",
    ),
    _FETCHED(
        "ahead[-1].first_offset <= header.last_offset",
        "ahead[-1].first_offset < header.last_offset",
    ),
    _FETCHED("aborting.pop(header.producer_id, None)", "pass"),
    _FETCHED("if check_crcs and not verify_crc", "if False and not verify_crc"),
    _VIEW("0 <= view.leader_epoch < older.leader_epoch", "False"),
    _VIEW("if known is not None and known.topic_id == answer.topic_id:", "if known is not None:"),
    _VIEW("                topics.pop(name, None)\n", ""),
    _ASSIGNORS("start + share + (place < rest)", "start + share"),
    _ASSIGNORS(
        "return withhold_moving(assign_sticky(topics, members), members)",
        "return assign_sticky(topics, members)",
    ),
    _MURMUR2("(murmur2(key) & 0x7FFFFFFF)", "murmur2(key)"),
    _ACCUMULATOR(
        "        stored = queue.take_stored()\n        self._resolve(queue)\n",
        "        stored = queue.take_stored()\n",
    ),
    _ACCUMULATOR("batch.in_doubt |= not isinstance(error, SEQUENCE_ERRORS)", "pass"),
    _ACCUMULATOR("if batch.base_sequence >= 0 and batch.in_doubt:", "if False:"),
    _ACCUMULATOR("return 1 if is_first else self._most_in_flight", "return self._most_in_flight"),
    _QUEUE("        if self.settling:\n            return True\n", ""),
    _QUEUE("if self.unresolved >= 0 and following.base_sequence < 0:", "if False:"),
    _QUEUE("if batch.is_out_of_order and batch.number < self.last_acknowledged", "if True"),
    _QUEUE("return bool(self.in_flight) and following.is_out_of_order", "return False"),
    _RETRY_LOG("self._began_ms.pop(who, None)", "pass"),
)
