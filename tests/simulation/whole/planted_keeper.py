"""Bugs of our ZooKeeper server that only brokers find which run on it: they commit several
operations in one transaction, which the clients of `simulation.keeper` never do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from barnabas.zookeeper import processor, transactions
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.tree import Transaction
from barnabas.zookeeper.watches import Watches


def _write_a_part(patch: pytest.MonkeyPatch) -> None:
    """The last change of a transaction of several nodes is missing from the journal (ZS-2)."""

    def part(transaction: Transaction) -> bytes:
        effects = transaction.effects
        if len(effects) > 1 and effects[-1].kind == trees.SET_DATA:
            transaction.effects = effects[:-1]
        try:
            return transactions.transaction_bytes(transaction)
        finally:
            transaction.effects = effects

    patch.setattr(processor, "transaction_bytes", part)


def _notify_of_single_changes(patch: pytest.MonkeyPatch) -> None:
    """A transaction of several changes fires no watch (ZS-2)."""
    commit, fire = processor.Processor._commit, Watches.fire

    def silent(self: processor.Processor, transaction: Transaction) -> None:
        is_single = len(transaction.effects) < 2
        kinds = {each.kind for each in transaction.effects}
        if is_single or trees.CLOSE_SESSION in kinds:
            commit(self, transaction)
            return
        patch.setattr(Watches, "fire", lambda self, event, path: None)
        commit(self, transaction)
        patch.setattr(Watches, "fire", fire)

    patch.setattr(processor.Processor, "_commit", silent)


KEEPERS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = MappingProxyType(
    {
        "part of a transaction": _write_a_part,
        "watches of a transaction": _notify_of_single_changes,
    }
)
