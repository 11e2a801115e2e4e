"""Mutations of the coordinators of groups and of transactions."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_GROUP_TESTS = (
    "unit/coordinator/test_groups.py",
    "property/test_group_machine.py",
    "unit/broker/handlers/test_heartbeat.py",
    "unit/broker/handlers/test_sync_group.py",
    "unit/broker/handlers/test_join_group.py",
)

_JOINING = partial(Mutation, "barnabas/coordinator/joining.py", tests=_GROUP_TESTS)
_MEMBERSHIP = partial(Mutation, "barnabas/coordinator/membership.py", tests=_GROUP_TESTS)
_COMMITS = partial(
    Mutation,
    "barnabas/coordinator/commits.py",
    tests=("unit/coordinator/test_commits.py", "property/test_offsets_machine.py"),
)
_TRANSACTION = partial(
    Mutation,
    "barnabas/coordinator/transaction.py",
    tests=("unit/coordinator/test_transactions.py", "property/test_transaction_machine.py"),
)
_TIMEOUTS = partial(
    Mutation,
    "barnabas/coordinator/timers.py",
    tests=("unit/coordinator/test_timers.py",),
)
_UNREPLICATED = partial(
    Mutation,
    "barnabas/coordinator/unreplicated.py",
    tests=("unit/coordinator/test_unreplicated.py",),
)
_ANSWERS = ("unit/broker/coordinator/test_unreplicated_answers.py",)
_MARKERS = partial(
    Mutation,
    "barnabas/broker/coordinator/markers.py",
    tests=("unit/broker/coordinator/test_markers.py",),
)
_VERIFIER = partial(
    Mutation,
    "barnabas/broker/coordinator/verifier.py",
    tests=("unit/broker/coordinator/test_verifier.py",),
)

MUTATIONS = (
    Mutation("barnabas/coordinator/membership.py", ", group.known_after)", ", AT_ONCE)", _ANSWERS),
    Mutation(
        "barnabas/coordinator/offsets.py",
        "                after = max(after, stored[LOG_OFFSET] + 1)\n",
        "",
        _ANSWERS,
    ),
    Mutation(
        "barnabas/broker/coordinator/shard.py",
        "self._visible_from if after is None else after",
        "self._visible_from",
        _ANSWERS,
    ),
    _UNREPLICATED("if known is None or known[LOG_OFFSET] < record.offset:", "if True:"),
    _UNREPLICATED(".setdefault(place, known)", "[place] = known"),
    _UNREPLICATED(
        "            if known is None or known[LOG_OFFSET] < stored[LOG_OFFSET]:\n"
        "                self._before[group_id][place] = stored\n",
        "            pass\n",
    ),
    _MARKERS("            return TRANSACTION_TOPIC in topics\n", "            return True\n"),
    _VERIFIER("        self._guards.pop((topic_partition, producer_id), None)\n", "        pass\n"),
    _VERIFIER("guard.code == _UNASKED or ", ""),
    _VERIFIER(" or guard.batch != batch", ""),
    _JOINING("    group.unsynced.discard(old_id)\n", ""),
    _JOINING(
        "    refuse_sync(turn, member, FencedInstanceId)\n",
        "",
    ),
    _MEMBERSHIP("    group.unsynced.discard(member.member_id)\n", ""),
    _MEMBERSHIP(
        "    if request.generation_id != group.generation:\n        return IllegalGeneration\n",
        "",
    ),
    _MEMBERSHIP(
        "    if request.generation_id != group.generation:\n        return IllegalGeneration.code",
        "    pass",
    ),
    _MEMBERSHIP("    timers.set(member.timer, now_ms + member.session_timeout_ms)\n", ""),
    _COMMITS("if error is None and generation != group.generation:", "if False:"),
    _COMMITS("return None if generation < 0 else IllegalGeneration", "return None"),
    _COMMITS(
        "if error is None and group.state is GroupState.COMPLETING:",
        "if False:",
    ),
    _TRANSACTION("        if self.is_decided:\n            raise ConcurrentTransactions\n", ""),
    _TRANSACTION(
        "        if producer_epoch != self.producer_epoch:\n            raise ProducerFenced\n", ""
    ),
    _TRANSACTION("partitions=added if is_new else self.partitions | added", "partitions=added"),
    _TRANSACTION("begun_ms=wall_ms if is_new else self.begun_ms", "begun_ms=wall_ms"),
    _TRANSACTION(
        "self.with_outcome(False, wall_ms)._replace(producer_epoch=bumped)",
        "self.with_outcome(False, wall_ms)",
    ),
    _TIMEOUTS("if known_ms is None or due_ms < known_ms:", "if known_ms is None:"),
    _TIMEOUTS("self._heap[0][0] < now_ms", "self._heap[0][0] <= now_ms"),
)
