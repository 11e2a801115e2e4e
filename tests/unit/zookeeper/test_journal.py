"""The files of the ZooKeeper server, cut and damaged at every byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError, CorruptData
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.journal import JOURNAL_NAME, Journal
from barnabas.zookeeper.jute import long_bytes
from barnabas.zookeeper.sessions import Session, Sessions
from barnabas.zookeeper.transactions import replay, restore, snapshot_bytes, transaction_bytes
from barnabas.zookeeper.tree import OPEN_ACL, Effect, Tree

EFFECTS = (
    Effect(trees.OPEN_SESSION, "", b"password", (), 7, 2000),
    Effect(trees.CREATE, "/a", b"first", OPEN_ACL),
    Effect(trees.SET_DATA, "/a", b"second"),
    Effect(trees.CREATE, "/a/b", None, OPEN_ACL, 7),
)


def load(directory: Path) -> bytes:
    """Return the whole state that the files contain, as the server loads it."""
    tree, sessions = Tree(), Sessions(1000, 5000)
    journal = Journal(directory)
    try:
        if journal.snapshot is not None:
            restore(journal.snapshot, tree, sessions)
        for batch in journal.batches:
            replay(batch, tree, sessions)
        if tree.zxid < journal.sealed_zxid:
            raise CorruptData("transactions are missing")
    finally:
        journal.close()
    return snapshot_bytes(tree, sessions)


def fill(directory: Path) -> tuple[list[bytes], list[int]]:
    """Write the batches. Return the state after each, and where each ends."""
    tree, sessions = Tree(), Sessions(1000, 5000)
    states, ends = [snapshot_bytes(tree, sessions)], [0]
    journal = Journal(directory)
    for effect in EFFECTS:
        transaction = tree.begin(1000)
        transaction.do(effect)
        transaction.commit()
        if effect.kind == trees.OPEN_SESSION:
            sessions.open(Session(effect.number, effect.timeout_ms, effect.data or b""))
        batch = long_bytes(tree.zxid) + transaction_bytes(transaction)
        journal.append(batch)
        states.append(snapshot_bytes(tree, sessions))
        ends.append(journal.size_bytes)
    journal.close()
    return states, ends


def test_a_cut_file_gives_whole_batches_or_is_refused(tmp_path: Path) -> None:
    states, ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    assert load(tmp_path) == states[-1]
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = sum(end <= length for end in ends) - 1
        try:
            found = load(tmp_path)
        except CorruptData:
            continue
        assert found == states[whole], length


def test_a_flipped_bit_never_gives_another_tree(tmp_path: Path) -> None:
    states, ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    for at in range(len(content)):
        for bit in (0, 7):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            if at < ends[-1]:
                with pytest.raises(CorruptData):
                    load(tmp_path)
            else:
                assert load(tmp_path) == states[-1]


def test_a_snapshot_replaces_the_batches(tmp_path: Path) -> None:
    states = fill(tmp_path)[0]
    journal = Journal(tmp_path)
    journal.replace(states[-1])
    journal.close()
    journal = Journal(tmp_path)
    assert journal.batches == []
    assert journal.sealed_zxid == len(EFFECTS)
    journal.close()
    assert load(tmp_path) == states[-1]


def test_files_in_use_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(ConfigError, match="in use"):
        Journal(tmp_path)
    journal.close()
