"""Reads the text of a compressed file: gzip, bzip2, xz or zstd.

Raises EOFError if the file ends too early because it is still being written. Raises `DamagedText`
if the file cannot be decompressed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, TypeVar, cast

import cramjam

from barnabas.errors import CorruptData
from barnabas.records.frames import zstd_bytes

MAGIC_BYTES: Final = 10
ZSTD_BYTES: Final = 256 << 20
"""The maximum size of zstd text, which is decompressed in memory, frame by frame."""

_GZIP: Final = b"\x1f\x8b\x08"
_BZIP2: Final = b"1AY&SY"  # after "BZh" and a digit
_XZ: Final = b"\xfd7zXZ\0"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

T = TypeVar("T")
Unpack = Callable[[BinaryIO], BinaryIO]


class DamagedText(Exception):
    """Raised if the text cannot be decompressed. The message gives the reason."""


def unpacking(magic: bytes) -> Unpack | None:
    """Return the decompressor for a file with these first bytes, or None if it is text."""
    if magic.startswith(_GZIP):
        return _gzip
    if magic.startswith(b"BZh") and magic[4:10] == _BZIP2:
        return _bzip2
    if magic.startswith(_XZ):
        return _xz
    return _zstd if magic.startswith(_ZSTD) else None


class PackedText(io.RawIOBase):
    """Reads the text of a compressed file from its start, and can only move forwards."""

    def __init__(self, file: BinaryIO, unpack: Unpack) -> None:
        file.seek(0)
        self._file = file
        self._unpack = unpack
        self._text: BinaryIO | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._try(lambda text: text.read(size))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._try(lambda text: text.seek(offset, whence))

    def _try(self, do: Callable[[BinaryIO], T]) -> T:
        try:
            if self._text is None:
                self._text = self._unpack(self._file)
            return do(self._text)
        except (OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a disk error
            raise DamagedText(str(error)) from None


def _gzip(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=file))


def _bzip2(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, bz2.BZ2File(file))


def _xz(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, lzma.LZMAFile(file))


def _zstd(file: BinaryIO) -> BinaryIO:
    packed = file.read(ZSTD_BYTES + 1)
    try:
        if len(packed) > ZSTD_BYTES or zstd_bytes(packed) > ZSTD_BYTES:
            raise DamagedText(f"its text may exceed {ZSTD_BYTES:,} bytes; decompress with zstd -d")
        return io.BytesIO(bytes(cramjam.zstd.decompress(packed)))
    except CorruptData:
        raise EOFError("a frame is incomplete") from None
