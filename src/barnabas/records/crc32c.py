"""Provides CRC-32C (Castagnoli), which is used as the checksum of record batches and producer
snapshots.

The `__init__` module of the `crc32c` wheel imports `importlib.metadata` and `argparse`, which would
take up a third of the time that a broker needs to start. This module therefore loads only the C
extension. There is no fallback in Python, because it would be two thousand times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes that can be read without copying them."""

Checksum = Callable[..., int]


def _load() -> Checksum:
    package = find_spec("crc32c")  # finds a top-level package without running it
    if package is not None and package.submodule_search_locations is not None:
        extension = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if extension is not None and extension.loader is not None:
            module = module_from_spec(extension)
            extension.loader.exec_module(module)
            found: Checksum = module.crc32c
            return found
    # The wheel has a different layout. The slow import works with any layout.
    from crc32c import crc32c as found_by_import

    return found_by_import


crc32c: Checksum = _load()
"""`crc32c(data, value=0)` returns the checksum of `data`. `value` is the checksum of the data
before it, if any.

The checksum is an unsigned 32-bit number. This is the function of the extension itself, because a
Python wrapper would cost another call for each batch.
"""
