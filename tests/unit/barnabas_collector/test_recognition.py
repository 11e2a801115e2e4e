"""What a file is: itself, a copy that took its place, a copy under way, or another file."""

from __future__ import annotations

from barnabas_collector.file_progress import FileProgress, new_file
from barnabas_collector.passed_over import PassedOver
from barnabas_collector.recognition import Found, Known, Recognised, recognise

LOG = "/var/log/access.log"
HEADER = b"#Fields: date time\n"


def file(inode: int, text: bytes, *, is_live: bool = False, is_listed: bool = True) -> Found:
    return Found(1, inode, len(text), text[:4096], is_live, is_listed)


def seen(inode: int, text: bytes, position: int | None = None, generation: int = 0) -> FileProgress:
    progress = new_file(LOG, text, generation).found_at(1, inode, text, 0)
    return progress._replace(position=len(text) if position is None else position)


def look(found: list[Found], known: list[FileProgress]) -> Recognised:
    return recognise(LOG, found, Known(known, []))


def test_a_renamed_file_is_itself() -> None:
    known = seen(7, HEADER + b"a\n")
    recognised = look([file(7, HEADER + b"a\nb\n"), file(8, HEADER, is_live=True)], [known])
    assert recognised.files[0].file_id == known.file_id
    assert recognised.files[0].beginning_bytes == len(HEADER) + 4, "it grows"
    assert (recognised.files[1].position, recognised.files[1].generation) == (0, 1)


def test_the_inode_of_a_removed_file_is_no_proof() -> None:
    known = seen(7, b"one\ntwo\n", position=4)
    recognised = look([file(7, b"one\nother, and longer\n", is_live=True)], [known])
    assert recognised.files[0].file_id != known.file_id
    assert recognised.files[0].position == 0


def test_a_file_cut_off_and_rewritten_is_a_new_generation() -> None:
    known = seen(7, b"first\nsecond\n")
    recognised = look([file(7, b"first\nnew\n", is_live=True)], [known])
    assert (recognised.files[0].generation, recognised.files[0].position) == (1, 0)


def test_a_copy_takes_the_place_of_the_file_that_was_truncated() -> None:
    known = seen(7, b"one\ntwo\n", position=4)
    before = look([file(8, b"one\n"), file(7, b"one\ntwo\n", is_live=True)], [known])
    assert list(before.files) == [1], "not while it is under way"
    after = look([file(8, b"one\ntwo\n"), file(7, b"three\nand more\n", is_live=True)], [known])
    assert (after.files[0].file_id, after.files[0].position) == (known.file_id, 4)
    assert (after.files[1].file_id, after.files[1].position) == (after.files[1].file_id, 0)


def test_a_compressed_file_is_not_read_beside_the_one_that_is_held_open() -> None:
    known = seen(7, b"one\ntwo\n")
    live = file(9, b"new\n", is_live=True)
    compressed = Found(1, 8, None, b"one\ntwo\n")
    held = look([file(7, b"one\ntwo\nlate\n", is_listed=False), compressed, live], [known])
    assert set(held.files) == {0, 2}
    closed = look([compressed, live], [known])
    assert closed.files[0].file_id == known.file_id


def test_with_a_header_alone_only_the_inode_counts() -> None:
    known = seen(7, HEADER)
    found = [Found(1, 8, None, HEADER + b"a\n"), file(9, HEADER + b"b\n", is_live=True)]
    assert [each.position for each in look(found, [known]).files.values()] == [0, 0]
    assert look([file(7, HEADER + b"a\n")], [known]).files[0].position == len(HEADER)


def test_a_copy_under_way_is_none_though_it_got_the_inode_of_a_file_that_was_removed() -> None:
    known = seen(7, HEADER)
    live = file(9, HEADER + b"one\ntwo\n", is_live=True)
    recognised = look([Found(1, 8, None, HEADER), file(7, HEADER + b"one\nt"), live], [known])
    assert list(recognised.files) == [0, 2]


def test_a_file_that_got_the_inode_of_another_is_still_known_by_its_beginning() -> None:
    header, other = seen(7, HEADER), seen(8, HEADER + b"one\n", generation=1)
    recognised = look([Found(1, 7, None, HEADER + b"one\ntwo\n")], [header, other])
    assert recognised.files[0].file_id == other.file_id


def test_the_first_look_passes_the_older_files_over() -> None:
    old = file(7, b"years ago\n")
    live = file(8, b"today\n", is_live=True)
    first = recognise(LOG, [old, live], Known([], None))
    assert list(first.files) == [1]
    assert list(first.passed_over.values()) == [PassedOver.of(Found(1, 7, None, b"years ago\n"))]
    later = recognise(
        LOG, [old, live], Known(list(first.files.values()), list(first.passed_over.values()))
    )
    assert list(later.files) == [1] and later.passed_over == {}


def test_an_empty_file_is_nothing_yet() -> None:
    """UX-4"""
    assert look([file(7, b"", is_live=True)], []).files == {}
