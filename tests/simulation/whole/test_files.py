"""The simulated disk: like a real one while all goes well, and as bad as one when it does not."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.storage.checkpoint import replace_file
from barnabas.storage.files import Entry, File, Files, OsFiles
from simulation.whole.files import SimFiles
from simulation.whole.lives import ProcessOver
from simulation.whole.strike import Strike
from tests.kit.effort import examples
from tests.kit.set_clock import SetClock

D = Path("/d")
X, Y = D / "x", D / "y"
PAGE = 4096


def _disk() -> SimFiles:
    return SimFiles(SetClock(), [D])


def _written(files: SimFiles, path: Path, data: bytes, at: int = 0) -> File:
    file = files.open(path, create=True)
    file.write(at, data)
    return file


# --- the same as a real one ----------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "a/b", "a/c", "b/a", "a/b/c"])
sizes = st.integers(0, 9000)
data = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(1, 255), sizes)
calls = st.one_of(
    st.tuples(st.just("open"), names, st.booleans()),
    st.tuples(st.just("write"), names, data, st.booleans()),
    st.tuples(st.just("read"), names),
    st.tuples(st.just("replace"), names, names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("make_directory"), names),
    st.tuples(st.just("make_directory"), names),
    st.tuples(st.just("remove_directory"), names),
    st.tuples(st.just("list"), names),
    st.tuples(st.just("sync"), names),
    st.tuples(st.just("lock"), names),
    st.tuples(st.just("modified_ms"), names),
    st.tuples(st.just("space"), names),
    st.tuples(st.just("file write"), st.integers(0, 5), sizes, data),
    st.tuples(st.just("file writev"), st.integers(0, 5), sizes, data),
    st.tuples(st.just("file truncate"), st.integers(0, 5), sizes),
    st.tuples(st.just("file pread"), st.integers(0, 5), sizes, sizes),
    st.tuples(st.just("file size"), st.integers(0, 5)),
    st.tuples(st.just("file release"), st.integers(0, 5)),
)


class Caller:
    """Makes the calls on one of the two disks, and keeps what it has opened."""

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root
        self._open: list[File] = []

    def call(self, what: str, *arguments: object) -> object:
        try:
            if what.startswith("file "):
                return self._on_file(what.removeprefix("file "), arguments)
            return self._on_files(what, arguments)
        except OSError as error:
            return type(error), error.errno

    def tree(self, path: Path | None = None) -> dict[str, object]:
        path = path or self._root
        found: dict[str, object] = {}
        for entry in self._files.list(path):
            inner = path / entry.name
            name = str(inner.relative_to(self._root))
            found[name] = self.tree(inner) if entry.is_directory else self._files.read(inner)
        return found

    def close(self) -> None:
        for file in self._open:
            file.release()

    def _on_files(self, what: str, arguments: tuple[object, ...]) -> object:
        files = self._files
        paths = [self._root / each for each in arguments if isinstance(each, str)]
        if what == "open":
            self._open.append(files.open(paths[0], create=bool(arguments[1])))
            return len(self._open)
        if what == "write":
            assert isinstance(arguments[1], bytes)
            return files.write(paths[0], arguments[1], sync=bool(arguments[2]))
        if what == "lock":
            lock = files.lock(paths[0])
            try:
                with pytest.raises(BlockingIOError):
                    files.lock(paths[0])
            finally:
                lock.release()
            return None
        result = getattr(files, what)(*paths)
        return None if what in ("modified_ms", "space") else result

    def _on_file(self, what: str, arguments: tuple[object, ...]) -> object:
        if not self._open:
            return None
        index, *rest = arguments
        assert isinstance(index, int)
        file = self._open[index % len(self._open)]
        if what == "release":
            self._open.remove(file)
            return file.release()
        if what == "writev":
            position, whole = rest
            assert isinstance(position, int) and isinstance(whole, bytes)
            return file.writev(position, [whole[:100], bytearray(whole[100:]), memoryview(b"!")])
        return getattr(file, what)(*(rest if what != "pread" else rest[::-1]))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(calls, max_size=40))
def test_any_calls_do_the_same_on_a_real_disk(sequence: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        real, ours = Caller(OsFiles(), Path(directory)), Caller(_disk(), D)
        try:
            for call in sequence:
                assert ours.call(*call) == real.call(*call), call
            assert ours.tree() == real.tree()
        finally:
            real.close()


RENAMED = ("file", "empty", "full", "full/file", "full/inner", "other", "none", "none/x", "file/x")


@pytest.mark.parametrize("source", RENAMED)
@pytest.mark.parametrize("target", RENAMED)
def test_a_rename_does_what_it_does_on_a_real_disk(
    tmp_path: Path, source: str, target: str
) -> None:
    real, ours = Caller(OsFiles(), tmp_path), Caller(_disk(), D)
    for caller in (real, ours):
        for directory in ("empty", "full/inner"):
            caller.call("make_directory", directory)
        for file in ("file", "full/file", "other"):
            caller.call("write", file, file.encode(), False)
    assert ours.call("replace", source, target) == real.call("replace", source, target)
    assert ours.tree() == real.tree()


def test_a_name_that_is_too_long_is_refused() -> None:
    files = _disk()
    with pytest.raises(OSError, match="name too long"):
        files.write(D / ("n" * 256), b"")
    files.write(D / ("n" * 255), b"")


def test_it_tells_sizes_times_and_room() -> None:
    clock = SetClock(5)
    files = SimFiles(clock, [D], capacity_bytes=1000)
    files.write(X, b"12345")
    clock.at_ms = 9
    file = files.open(X)
    assert files.modified_ms(X) == 5
    file.write(5, b"6")
    assert files.modified_ms(X) == 9
    assert files.list(D) == [Entry("x", False, 6)]
    assert files.space(D) == (1000, 994)
    with pytest.raises(OSError, match="not supported"):
        file.fileno()


def test_a_file_is_held_by_a_count() -> None:
    file = _written(_disk(), X, b"1")
    file.acquire()
    file.release()
    assert file.pread(9, 0) == b"1"
    file.release()
    with pytest.raises(OSError, match="Bad file"):
        file.pread(1, 0)
    with pytest.raises(AssertionError, match="more often"):
        file.release()


# --- kill -9 -------------------------------------------------------------------------------------


def test_a_kill_keeps_every_byte_and_name() -> None:
    files = _disk()
    file = _written(files, X, b"1")
    files.write(Y, b"2")
    lock = files.lock(D / ".lock")
    files.process_died()
    assert (files.read(X), files.read(Y)) == (b"1", b"2")
    for use in (
        lambda: file.write(0, b"9"),
        lambda: file.writev(0, [b"9"]),
        lambda: file.truncate(0),
        lambda: file.pread(1, 0),
        file.size,
    ):
        with pytest.raises(ProcessOver):
            use()
    assert files.read(X) == b"1"
    again = files.lock(D / ".lock")
    lock.release()
    with pytest.raises(BlockingIOError):
        files.lock(D / ".lock")
    again.release()


def test_what_was_mounted_for_a_dead_process_changes_nothing() -> None:
    files = _disk()
    mine = files.mounted()
    mine.write(X, b"1")
    files.process_died()
    uses: list[Callable[[], object]] = [
        lambda: mine.write(X, b"9"),
        lambda: mine.open(X),
        lambda: mine.read(X),
        lambda: mine.replace(X, Y),
        lambda: mine.remove(X),
        lambda: mine.make_directory(D / "z"),
        lambda: mine.remove_directory(D),
        lambda: mine.list(D),
        lambda: mine.modified_ms(X),
        lambda: mine.space(D),
        lambda: mine.sync(D),
        lambda: mine.lock(Y),
    ]
    for use in uses:
        with pytest.raises(ProcessOver):
            use()
    assert files.mounted().read(X) == b"1" and len(files.list(D)) == 1


# --- in the middle of a turn ---------------------------------------------------------------------


def _struck(
    work: Callable[[Files], object], operations: int, seed: int = 0, *, is_powerless: bool = False
) -> SimFiles | None:
    """A disk whose process died in its work; None if that came to its end before."""
    files = _disk()
    _written(files, X, b"old" * 99)
    files.sync(X)
    files.sync(D)
    random = Random(seed)

    def befall() -> None:
        if is_powerless:
            files.power_cut(random)
        else:
            files.process_died()

    files.strike(Strike(operations, random, befall))
    mine = files.mounted()
    try:
        work(mine)
    except ProcessOver:
        with pytest.raises(ProcessOver):
            mine.write(X, b"a dead process's")
        return files
    return None


def _replaces(files: Files) -> None:
    replace_file(files, X, b"new" * 99)


def _writes_in_place(files: Files) -> None:
    files.write(X, b"new" * 99, sync=True)


def _contents(work: Callable[[Files], object], *, is_powerless: bool = False) -> set[object]:
    """What is found of a file after a death at any operation of some work on it."""
    found: set[object] = set()
    for seed in range(30):
        operations = 1
        while files := _struck(work, operations, seed, is_powerless=is_powerless):
            found.add(_content(files))
            operations += 1
        assert operations == {_replaces: 7, _writes_in_place: 4}[work]
    return found


@pytest.mark.parametrize("is_powerless", [False, True])
def test_a_file_that_is_replaced_is_the_old_or_the_new_whenever_its_process_dies(
    is_powerless: bool,
) -> None:
    assert _contents(_replaces, is_powerless=is_powerless) == {b"old" * 99, b"new" * 99}


@pytest.mark.parametrize("is_powerless", [False, True])
def test_one_that_is_written_in_place_may_be_anything(is_powerless: bool) -> None:
    found = _contents(_writes_in_place, is_powerless=is_powerless)
    assert {b"old" * 99, b"", b"new" * 99} <= found
    whole = b"new" * 99
    torn = [each for each in found if each and isinstance(each, bytes) and whole != each]
    assert any(whole.startswith(each) for each in torn)


def test_a_strike_waits_for_the_process_that_comes_and_can_be_undone() -> None:
    files = _disk()
    files.mounted().write(X, b"1")
    files.process_died()
    files.strike(Strike(2, Random(1), files.process_died))
    second = files.mounted()
    assert second.read(X) == b"1", "what changes nothing is not counted"
    with pytest.raises(ProcessOver):
        second.write(Y, b"2")
    assert _content(files, Y) == b"", "its name is there, and its bytes are not"
    files.strike(Strike(1, Random(1), files.process_died))
    files.spare()
    files.mounted().write(Y, b"3")
    assert files.read(Y) == b"3"


# --- a power cut ---------------------------------------------------------------------------------


def _outcomes(
    prepare: Callable[[SimFiles], object], look: Callable[[SimFiles], object]
) -> set[object]:
    """All that is found by `look` after power cuts of many seeds."""
    found = set()
    for seed in range(200):
        files = _disk()
        prepare(files)
        files.power_cut(Random(seed))
        found.add(look(files))
    return found


def _content(files: SimFiles, path: Path = X) -> bytes | None:
    try:
        return files.read(path)
    except FileNotFoundError:
        return None


def test_what_was_synced_outlives_a_power_cut() -> None:
    def prepare(files: SimFiles) -> None:
        _written(files, X, b"a" * 5000)
        files.write(Y, b"b", sync=True)
        files.sync(X)
        files.sync(D)

    assert _outcomes(prepare, lambda files: (_content(files), _content(files, Y))) == {
        (b"a" * 5000, b"b")
    }


def test_bytes_that_were_not_synced_are_lost_page_by_page() -> None:
    def prepare(files: SimFiles) -> None:
        file = _written(files, X, b"a" * (3 * PAGE))
        files.sync(X)
        files.sync(D)
        file.write(PAGE // 2, b"b" * PAGE)
        file.write(3 * PAGE, b"c" * 10)
        file.write(3 * PAGE + 10, b"d" * (2 * PAGE))

    found = _outcomes(prepare, _content)
    lengths, torn = set(), 0
    for content in found:
        assert isinstance(content, bytes)
        first, second = content[:PAGE], content[PAGE : 2 * PAGE]
        assert first in (b"a" * PAGE, b"a" * (PAGE // 2) + b"b" * (PAGE // 2))
        assert second in (b"a" * PAGE, b"b" * (PAGE // 2) + b"a" * (PAGE // 2))
        torn += (b"b" in first) != (b"b" in second)
        assert content[2 * PAGE : 3 * PAGE] == b"a" * PAGE, "it was synced, and not written since"
        assert set(content[3 * PAGE :]) <= set(b"cd\0")
        lengths.add(len(content))
    assert torn
    end = 3 * PAGE
    assert lengths >= {end, end + 10, end + 10 + 2 * PAGE}, "a size that it had"
    assert lengths & {end + PAGE, end + 2 * PAGE}, "or while it was written, page by page"


def test_a_truncation_that_was_not_synced_may_be_undone() -> None:
    def prepare(files: SimFiles) -> None:
        file = _written(files, X, b"a" * 100)
        files.sync(X)
        files.sync(D)
        file.truncate(50)
        file.write(50, b"b" * 10)

    assert _outcomes(prepare, _content) == {
        b"a" * 100,  # neither
        b"a" * 50,  # the size, in between
        b"a" * 60,  # the last size, not the page
        b"a" * 50 + b"b" * 10,
        b"a" * 50 + b"b" * 10 + bytes(40),  # the page, not the size
    }


def test_names_that_were_not_synced_are_lost_from_the_last_one_on() -> None:
    def prepare(files: SimFiles) -> None:
        files.write(X, b"old", sync=True)
        files.sync(D)
        files.write(Y, b"new", sync=True)
        files.replace(Y, X)
        files.write(D / "z", b"z", sync=True)
        files.remove(X)

    assert _outcomes(prepare, lambda files: (_content(files), _content(files, Y))) == {
        (b"old", None),
        (b"old", b"new"),
        (b"new", None),  # with z or without
        (None, None),
    }


def test_a_name_says_nothing_of_the_bytes() -> None:
    def prepare(files: SimFiles) -> None:
        files.write(X, b"new")
        files.sync(D)

    assert _outcomes(prepare, _content) == {b"", b"\0\0\0", b"new"}


def test_a_move_between_directories_is_in_both_or_in_neither() -> None:
    def prepare(files: SimFiles) -> None:
        files.make_directory(D / "in")
        files.write(X, b"1", sync=True)
        files.sync(D)
        files.replace(X, D / "in" / "x")

    def places(files: SimFiles) -> object:
        return _content(files), _content(files, D / "in" / "x")

    assert _outcomes(prepare, places) == {(b"1", None), (None, b"1")}

    def prepare_and_sync(files: SimFiles) -> None:
        files.make_directory(D / "in")
        files.write(X, b"1", sync=True)
        files.sync(D)
        files.write(D / "in" / "y", b"", sync=True)
        files.replace(X, D / "in" / "x")
        files.write(D / "in" / "z", b"", sync=True)
        files.sync(D)

    assert _outcomes(prepare_and_sync, places) == {(None, b"1")}
    names = _outcomes(prepare_and_sync, lambda files: len(files.list(D / "in")))
    assert names == {2, 3}, "what came before it is there with it"


def test_a_directory_is_no_more_than_a_name() -> None:
    def prepare(files: SimFiles) -> None:
        files.make_directory(D / "in")
        files.write(D / "in" / "x", b"1", sync=True)
        files.sync(D / "in")

    assert _outcomes(prepare, lambda files: _content(files, D / "in" / "x")) == {None, b"1"}


def test_one_seed_has_one_outcome() -> None:
    def run(seed: int) -> list[bytes | None]:
        files = _disk()
        for number in range(20):
            _written(files, D / str(number), bytes([number]) * 9000)
        files.power_cut(Random(seed))
        return [_content(files, D / str(number)) for number in range(20)]

    assert run(3) == run(3) != run(4)


def test_after_a_power_cut_nothing_is_cached() -> None:
    files = _disk()
    file = _written(files, X, b"1")
    assert file.is_cached(0, 1)
    files.sync(X)
    files.sync(D)
    files.power_cut(Random(1))
    file = files.open(X)
    assert not file.is_cached(0, 1)
    file.warm(0, 1)
    assert file.is_cached(0, 1)


# --- a disk that is full or broken ---------------------------------------------------------------


def test_a_full_disk_takes_what_has_room() -> None:
    files = _disk()
    file = _written(files, X, b"12")
    files.fail(D, errno.ENOSPC, after_bytes=3)
    file.write(2, b"34")
    assert files.space(D).usable_bytes == 1
    with pytest.raises(OSError, match="No space"):
        file.write(4, b"56")
    assert files.read(X) == b"12345"
    with pytest.raises(OSError, match="No space"):
        files.write(Y, b"")
    with pytest.raises(OSError, match="No space"):
        files.make_directory(D / "in")
    files.sync(X)
    file.truncate(1)
    files.replace(X, Y)
    files.remove(Y)
    files.write(Path("/elsewhere"), b"1")
    files.heal(D)
    files.write(X, b"again")


def test_a_broken_disk_changes_nothing_more() -> None:
    files = _disk()
    file = _written(files, X, b"12")
    files.fail(D, errno.EIO)
    uses: list[Callable[[], object]] = [
        lambda: file.write(0, b"9"),
        lambda: file.truncate(0),
        lambda: files.write(X, b"9"),
        lambda: files.write(Y, b""),
        lambda: files.replace(X, Y),
        lambda: files.remove(X),
        lambda: files.make_directory(D / "in"),
        lambda: files.remove_directory(D),
        lambda: files.sync(X),
        lambda: files.sync(D),
        lambda: files.lock(D / ".lock"),
    ]
    for use in uses:
        with pytest.raises(OSError) as refused:
            use()
        assert refused.value.errno == errno.EIO
    assert file.pread(9, 0) == files.read(X) == b"12"
    assert [entry.name for entry in files.list(D)] == ["x"]


def test_a_sync_that_failed_is_not_made_good_by_the_next() -> None:
    """The kernel marks the pages clean: they may never reach the disk."""

    def prepare(files: SimFiles) -> None:
        file = _written(files, X, b"lost")
        files.sync(D)
        files.fail(X, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            files.sync(X)
        files.heal(X)
        file.write(PAGE, b"safe")
        files.sync(X)

    heads = {b"lost" + bytes(PAGE - 4), bytes(PAGE)}
    assert _outcomes(prepare, _content) == {head + b"safe" for head in heads}
