"""Provides CRC-32C (Castagnoli), the checksum of record batches and producer snapshots.

The `crc32c` wheel's own `__init__` imports `importlib.metadata` and `argparse`, which would take a
third of a broker's startup time. This module loads only the C extension. There is no Python
fallback; it would be two thousand times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes, read without a copy."""

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
    # The wheel's layout is different, so use the slow import, which works with any layout.
    from crc32c import crc32c as found_by_import

    return found_by_import


crc32c: Checksum = _load()
"""`crc32c(data, value=0)` returns the checksum of `data`, continued from `value`.

The checksum is an unsigned 32-bit number. This is the extension's own function; a Python wrapper
would add a call per batch.
"""
