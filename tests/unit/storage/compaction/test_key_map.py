"""ST-7: the map of the newest offsets says what a dict would, in at most 40 bytes a key."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.batch import read_header
from barnabas.records.record import BatchBuilder
from barnabas.records.varint import append_varint
from barnabas.storage.compaction import key_map as module
from barnabas.storage.compaction.key_map import NEWEST, UNKNOWN, KeyMap, fold
from barnabas.storage.compaction.sieve import Section, note_keys, sift
from tests.kit.effort import examples

KEYS = st.one_of(
    st.integers(0, 40).map(lambda i: b"%d" % i),
    st.sampled_from([b"", b"\0", b"\0" * 16, b"x" * 63, b"x" * 64, b"x" * 65, b"y" * 5000]),
)


def section_of(keys: list[bytes], base_offset: int) -> Section:
    builder = BatchBuilder()
    for key in keys:
        builder.append(1, key, b"value")
    raw = builder.build()
    header = read_header(raw)._replace(base_offset=base_offset)
    return Section(header, raw, 61, len(raw))


@settings(max_examples=examples(200))
@given(
    st.lists(st.lists(KEYS, min_size=1, max_size=30), min_size=1, max_size=20),
    st.sampled_from([0, 1, 30]),
    st.sampled_from([1, 64]),
)
def test_it_says_what_a_dict_says(
    batches: list[list[bytes]], unthinned: int, region_entries: int
) -> None:
    """However often it is thinned, and however many regions there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_UNTHINNED", unthinned)
        patch.setattr(module, "_REGION_ENTRIES", region_entries)
        key_map, expected, offset = KeyMap(1 << 20, 100), dict[bytes, int](), 100
        for keys in batches:
            note_keys(section_of(keys, offset), key_map)
            for key in keys:
                expected[key] = offset - 100
                offset += 1
        key_map.finish()
        assert key_map.marks is not None
        marked = {i for i, mark in enumerate(key_map.marks) if mark & NEWEST}
        assert marked == set(expected.values())
        words = [word for key in expected for word in fold(key)]
        assert key_map.newest(words) == list(expected.values())
        assert key_map.newest(fold(b"never met")) == [UNKNOWN]
        key_map.latest_offset = offset - 1
        for begin in (0, 100):  # what is clean goes if its key is in the map
            met = [key for keys in batches for key in keys]
            sifted = sift(section_of(met, begin), key_map, drops_tombstones=False)
            assert sifted.kept == (len(expected) if begin else 0)


def test_a_match_across_two_entries_is_none() -> None:
    key_map = KeyMap(1 << 20)
    key_map.add([256, 7, 0, 512, 7, 1])
    key_map.make_marks(1)
    key_map.finish()
    # The second hash and the offset of the first entry would be the two hashes of this one.
    part = bytes(key_map._parts[0])
    crossing = part[16:32]
    first = int.from_bytes(crossing[:8], "little")
    second = int.from_bytes(crossing[8:], "little")
    assert first & 0xFF == 0, "it belongs to the same region"
    assert key_map.newest([first, second]) == [UNKNOWN]


@pytest.mark.thorough
def test_a_key_takes_at_most_40_bytes_at_the_peak_st_7() -> None:
    """Four values to each of 50,000 keys, which are met at first in one order and then in others;
    marks included. Each process has its own hashes: 187 of them took 36.2 to 39.7 bytes."""
    keys = 50_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_UNTHINNED", 5000)
        tracemalloc.start()
        try:
            key_map = KeyMap(1 << 27)
            before, _ = tracemalloc.get_traced_memory()
            for round_number in range(4):
                for first in range(0, keys, 100):
                    words = []
                    for i in range(first, first + 100):
                        key = i * (1, 7, 1, 1)[round_number] % keys
                        words += [*fold(b"key-%d" % key), round_number * keys + i]
                    key_map.add(words)
            key_map.make_marks(4 * keys - 1)
            key_map.finish()
            assert key_map.newest(fold(b"key-1")) == [3 * keys + 1]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (peak - before) / keys <= 40


def test_only_a_map_without_keys_takes_a_batch_that_is_too_large() -> None:
    key_map = KeyMap(10 * module.BYTES_PER_KEY)  # nine of them may be used
    large = section_of([b"%d" % i for i in range(20)], 0)
    small = section_of([b"0"], 20)
    assert key_map.has_room(large.header)
    note_keys(large, key_map)
    assert not key_map.has_room(small.header)


def test_repetitions_make_room() -> None:
    """What is full of out-of-date entries is thinned before a pass ends early for it."""
    key_map = KeyMap(100 * module.BYTES_PER_KEY)
    for i in range(50):
        section = section_of([b"a", b"b", b"c"], 3 * i)
        assert key_map.has_room(section.header)
        note_keys(section, key_map)
    key_map.finish()
    assert key_map.newest(fold(b"c")) == [149]


def test_a_length_that_is_longer_than_it_must_be_changes_no_key() -> None:
    """A varint of one byte written as two."""
    body = bytearray()
    for size in (b"\x02", b"\x82\x00"):
        fields = b"\0\0" + bytes((2 * (len(size) - 1),)) + size + b"k" + b"\x02v" + b"\0"
        append_varint(body, len(fields))
        body += fields
    header = section_of([b"k", b"k"], 0).header
    key_map = KeyMap(1 << 20)
    note_keys(Section(header, bytes(body), 0, len(body)), key_map)
    key_map.finish()
    assert bytes(key_map.marks or b"") == b"\0\1"


def test_offsets_beyond_the_batch_are_no_batch() -> None:
    """Its checksum may be right all the same: a client has written it so."""
    section = section_of([b"a", b"b"], 0)
    lying = section.header._replace(last_offset_delta=0)
    with pytest.raises(CorruptData):
        note_keys(section._replace(header=lying), KeyMap(1 << 20))
