"""The embedded store against a dictionary, with a crash at every byte of what it wrote last."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import JOURNAL_NAME, Journal
from barnabas.cluster.journal_frames import seal
from barnabas.cluster.nodes import Tree
from barnabas.cluster.store import Create, Delete, MetadataError, Operation, Set
from barnabas.errors import CorruptData
from tests.kit.effort import examples
from tests.kit.metadata_commits import commits

Model = dict[str, tuple[bytes | None, int, int]]
"""Data, version and number of children ever created, by path."""


def _apply_to_model(model: Model, batch: list[Operation]) -> Model | None:
    """What ZooKeeper's rules make of it, written again and simply; None if it is refused."""
    after = dict(model)
    for operation in batch:
        path = operation.path
        parent = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            if parent not in after:
                return None
            if operation.sequential:
                path += f"{after[parent][2]:010d}"
            if path in after:
                return None
            after[path] = (operation.data, 0, 0)
            held, version, created = after[parent]
            after[parent] = (held, version, created + 1)
            continue
        if path not in after or operation.version not in (-1, after[path][1]):
            return None
        held, version, created = after[path]
        if isinstance(operation, Set):
            after[path] = (operation.data, version + 1, created)
        elif isinstance(operation, Delete):
            if any(other.startswith(f"{path}/") for other in after):
                return None
            del after[path]
    return after


def _as_model(tree: Tree) -> Model:
    return {path: (n.data, n.version, n.children_created) for path, n in tree.nodes.items()}


async def _run(
    directories: Path | Sequence[Path], batches: list[list[Operation]], snapshot_at: int
) -> list[Model]:
    """The model after each commit that went through, checked against the store's own tree."""
    journal = Journal(*([directories] if isinstance(directories, Path) else directories))
    store = EmbeddedStore(journal, snapshot_at)
    history: list[Model] = [{"/": (None, 0, 0)}]
    for batch in batches:
        expected = _apply_to_model(history[-1], batch)
        try:
            await store.commit(batch)
            assert expected is not None, f"{batch} should have been refused"
        except MetadataError:
            assert expected is None, f"{batch} should have gone through"
        if expected is not None:
            history.append(expected)
        assert _as_model(store.tree) == history[-1]
    journal.close()  # but not the store: the process is killed here, and loses its lock
    return history


def _reopened(*directories: Path) -> Model:
    journal = Journal(*directories)
    try:
        return _as_model(EmbeddedStore(journal).tree)
    finally:
        journal.close()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Each crash here cuts a commit, and says so; a failure should show something else."""
    caplog.set_level("CRITICAL", logger="barnabas.cluster.journal")


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(commits, max_size=8), st.sampled_from([1 << 20, 300, 1]))
def test_it_is_a_dictionary_that_survives(batches: list[list[Operation]], snapshot_at: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        history = asyncio.run(_run(Path(name), batches, snapshot_at))
        assert _reopened(Path(name)) == history[-1]
        assert _reopened(Path(name)) == history[-1]


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(commits, min_size=1, max_size=4))
def test_a_crash_at_any_byte_leaves_whole_commits(batches: list[list[Operation]]) -> None:
    """All or nothing: each prefix of the journal is one of the states that there were."""
    with tempfile.TemporaryDirectory() as name:
        written = Path(name) / "written"
        written.mkdir()
        history = asyncio.run(_run(written, batches, 1 << 20))
        journal = (written / JOURNAL_NAME).read_bytes()
        reached = []
        for size_bytes in range(len(journal) + 1):
            crashed = Path(name) / "crashed"
            crashed.mkdir()
            (crashed / JOURNAL_NAME).write_bytes(journal[:size_bytes])
            reached.append(_reopened(crashed))
            shutil.rmtree(crashed)
        assert [model for n, model in enumerate(reached) if n == 0 or model != reached[n - 1]] == [
            model for n, model in enumerate(history) if n == 0 or model != history[n - 1]
        ]
        assert reached[-1] == history[-1]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(commits, min_size=1, max_size=6), st.sampled_from([1 << 20, 200, 1]), st.data())
def test_a_flipped_bit_loses_no_commit_silently(
    batches: list[list[Operation]], snapshot_at: int, draw: st.DataObject
) -> None:
    """Of the only copy: the start is refused, or everything is there. Behind the last commit there
    is a seal, so not even that one can be taken for what a crash has left."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        history = asyncio.run(_run(directory, batches, snapshot_at))
        _flip_a_bit(directory, draw)
        with suppress(CorruptData):
            assert _reopened(directory) == history[-1]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(commits, min_size=1, max_size=6), st.sampled_from([1 << 20, 200, 1]), st.data())
def test_a_flipped_bit_in_one_of_two_copies_is_repaired(
    batches: list[list[Operation]], snapshot_at: int, draw: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directories = Path(name) / "a", Path(name) / "b"
        for each in directories:
            each.mkdir()
        history = asyncio.run(_run(directories, batches, snapshot_at))
        damaged = draw.draw(st.sampled_from(directories))
        _flip_a_bit(damaged, draw)
        assert _reopened(*directories) == history[-1]
        assert _reopened(damaged) == history[-1]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(commits, min_size=1, max_size=4), st.data())
def test_a_flipped_bit_after_a_crash_loses_at_most_the_last_commit(
    batches: list[list[Operation]], draw: st.DataObject
) -> None:
    """Without a seal behind it, it cannot be told from one that was never acknowledged."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        history = asyncio.run(_run(directory, batches, 1 << 20))
        journal = (directory / JOURNAL_NAME).read_bytes()
        (directory / JOURNAL_NAME).write_bytes(journal[: -len(seal(0))])
        _flip_a_bit(directory, draw)
        with suppress(CorruptData):
            assert _reopened(directory) in history[-2:]


def _flip_a_bit(directory: Path, draw: st.DataObject) -> None:
    """In any of the files."""
    paths = sorted(path for path in directory.iterdir() if path.stat().st_size)
    if paths:
        path = draw.draw(st.sampled_from(paths))
        content = bytearray(path.read_bytes())
        bit = draw.draw(st.integers(0, len(content) * 8 - 1))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
