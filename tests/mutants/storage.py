"""Mutations of what logs are made of."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_PRODUCERS = partial(
    Mutation,
    "barnabas/storage/producers.py",
    tests=(
        "unit/storage/test_producers.py",
        "unit/storage/test_log.py",
        "unit/broker/handlers/test_write_txn_markers.py",
        "unit/broker/handlers/test_end_txn.py",
        "unit/broker/handlers/test_produce.py",
    ),
)
_TRANSACTIONS = partial(
    Mutation,
    "barnabas/storage/transaction_index.py",
    tests=(
        "unit/storage/test_transaction_index.py",
        "unit/storage/test_log.py",
        "unit/storage/test_truncation.py",
        "unit/storage/test_recovery.py",
        "unit/broker/handlers/test_write_txn_markers.py",
        "property/test_log.py",
    ),
)
_DURABILITY = partial(
    Mutation,
    "barnabas/storage/durability.py",
    tests=(
        "unit/storage/test_durability.py",
        "unit/storage/test_durable_cut.py",
        "unit/storage/test_truncation.py",
        "unit/storage/test_crash.py",
        "unit/storage/test_store.py",
        "simulation/whole/test_log_store.py",
        "property/test_power_cuts.py",
    ),
)
_INDEX = partial(Mutation, "barnabas/storage/index.py", tests=("unit/storage/test_index.py",))
_SNAPSHOT = partial(
    Mutation,
    "barnabas/storage/snapshot.py",
    tests=(
        "unit/storage/test_snapshot.py",
        "unit/storage/test_recovery.py",
        "unit/storage/test_truncation.py",
        "property/test_log.py",
    ),
)
_LOADED = partial(Mutation, "barnabas/storage/producers.py", tests=_SNAPSHOT.keywords["tests"])

MUTATIONS = (
    Mutation(
        "barnabas/storage/log.py",
        "        self.first_dirty_offset = min(self.first_dirty_offset, offset)\n",
        "",
        ("unit/storage/test_cleaner.py",),
    ),
    _PRODUCERS("batch.last_sequence == last and batch.base_sequence == sequence", "False"),
    _PRODUCERS(
        "        elif header.producer_epoch < epoch:\n"
        "            raise _fencing_error(header.producer_id, header.producer_epoch, epoch)\n",
        "",
    ),
    _PRODUCERS("        if sequence != expected and epoch", "        if False and epoch"),
    _PRODUCERS("            expected = 0\n", "            expected = sequence\n"),
    _PRODUCERS(
        "if began != NO_OFFSET and not header.is_transactional:",
        "if False:",
    ),
    _PRODUCERS("        if coordinator_epoch < producer.coordinator_epoch:", "        if False:"),
    _PRODUCERS(
        "if timestamp <= before_ms and began == NO_OFFSET:",
        "if timestamp <= before_ms:",
    ),
    _PRODUCERS(
        "if header.attributes & TRANSACTIONAL and began == NO_OFFSET:",
        "if header.attributes & TRANSACTIONAL:",
    ),
    _TRANSACTIONS(
        "stable = next(iter(self._open.values()), marker_offset + 1)",
        "stable = marker_offset + 1",
    ),
    _TRANSACTIONS("if entry.first_offset < end:", "if entry.last_offset < end:"),
    _TRANSACTIONS(
        "if entry.last_stable_offset >= end:",
        "if entry.last_offset >= end:",
    ),
    _DURABILITY("        if not self._was_cut(unsynced):\n", "        if True:\n"),
    _DURABILITY("        self.recovery_point = min(self.recovery_point, offset)\n", ""),
    _DURABILITY("            self._files.sync(directory)\n", ""),
    _DURABILITY("        self._whole_at = -1\n", ""),
    _DURABILITY(
        "            self._epochs.save(unsynced.epochs)\n",
        "            pass\n",
    ),
    _INDEX("            return 0, self._page_at\n", "            return 0, 0\n"),
    _INDEX(
        '        self._last, self._page = None, b""\n        super().truncate',
        "        super().truncate",
    ),
    _SNAPSHOT("    if crc != crc32c(body) or len(body)", "    if len(body)"),
    _LOADED("            if first_offset != NO_OFFSET:\n", "            if False:\n"),
    _SNAPSHOT("in reversed(offsets):", "in offsets:"),
)
