"""The checksum of batches and snapshots."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.crc32c import crc32c


def _by_definition(data: bytes) -> int:
    """Bit by bit, with the reflected polynomial of Castagnoli."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_published_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=200), st.integers(0, 200))
def test_it_is_what_its_polynomial_says_and_can_be_continued(data: bytes, cut: int) -> None:
    assert crc32c(data) == _by_definition(data)
    assert crc32c(memoryview(data)[cut:], crc32c(bytearray(data[:cut]))) == crc32c(data)


def test_the_slow_front_door_of_its_wheel_stays_shut() -> None:
    """It imports argparse and importlib.metadata, a quarter of a broker's start."""
    code = (
        "import sys, barnabas.records.crc32c; "
        "print([m for m in ('argparse', 'importlib.metadata', 'crc32c') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
