"""Whatever bytes are unpacked, memory stays within a small multiple of the limit.

The libraries allocate where Python cannot count, so a process of its own unpacks, and the system
says how much it ever held.
"""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from struct import pack

import pytest

from barnabas.errors import CorruptData
from barnabas.records.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD, compress, decompress
from tests.kit.effort import examples

MIB = 1024 * 1024
LIMIT_BYTES = MIB
BOMB_BYTES = 64 * MIB
SLACK_BYTES = 16 * MIB  # what is unpacked, twice, and what allocators keep

_SKIPPABLE = pack("<II", 0x184D2A53, 3) + b"abc"


@pytest.mark.thorough
def test_any_bytes_take_little_more_memory_than_the_limit(tmp_path: Path) -> None:
    """Concatenated and skippable frames count as well, and so do windows and stated sizes."""
    pytest.importorskip("resource", reason="memory is counted by getrusage, which Windows lacks")
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):  # packed here: that takes the memory that is measured
        plain = bytes(BOMB_BYTES // (4 if codec == SNAPPY else 1))
        (tmp_path / str(codec)).write_bytes(compress(codec, plain))
    command = [sys.executable, "-m", __name__, str(tmp_path), str(examples(400))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 3 * LIMIT_BYTES + SLACK_BYTES


def _hostile(dice: random.Random, bombs: dict[int, bytes], codec: int) -> bytes:
    """Bytes that look like the codec's: frames one behind the other, cut, or with some changed."""
    pieces = []
    for _ in range(dice.choice((1, 1, 2, 2, 3))):
        kind = dice.randrange(6)
        if kind < 3:
            pieces.append(bombs[codec])
        elif kind == 3:
            pieces.append(compress(codec, dice.randbytes(dice.randrange(40))))
        elif kind == 4:
            pieces.append(_SKIPPABLE)
        else:
            pieces.append(dice.randbytes(dice.randrange(12)))
    data = bytearray(b"".join(pieces))
    for _ in range(dice.choice((0, 0, 1, 4)) if data else 0):
        near = min(len(data), dice.choice((8, 24, len(data))))
        data[dice.randrange(near)] = dice.randrange(256)
    return bytes(data[: len(data) - dice.choice((0, 0, 0, dice.randrange(40)))])


def _windows() -> list[bytes]:
    """Zstd frames that ask for large windows, or state sizes, and hold a run of one byte each."""
    run = pack("<I", (1 | 1 << 1 | (128 * 1024) << 3))[:3] + b"x"
    magic = b"\x28\xb5\x2f\xfd"
    windows = [magic + bytes((0, window)) + run for window in range(256)]
    sizes = [magic + b"\xe0" + pack("<Q", 1 << bits) + run for bits in range(64)]
    return windows + sizes


def _highest_bytes() -> int:
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else highest * 1024


def _unpack_all(directory: Path, count: int) -> int:
    """By how much the memory of this process grew at most."""
    bombs = {codec: (directory / str(codec)).read_bytes() for codec in range(1, len(CODEC_NAMES))}
    inputs = [(ZSTD, frame) for frame in _windows()]
    dice = random.Random(20260101)
    before = _highest_bytes()
    for number in range(len(inputs) + count):
        if number < len(inputs):
            codec, data = inputs[number]
        else:
            codec = dice.choice((GZIP, SNAPPY, LZ4, ZSTD))
            data = _hostile(dice, bombs, codec)
        with suppress(CorruptData):
            assert len(decompress(codec, data, LIMIT_BYTES)) <= LIMIT_BYTES
    return _highest_bytes() - before


if __name__ == "__main__":
    print(_unpack_all(Path(sys.argv[1]), int(sys.argv[2])))
