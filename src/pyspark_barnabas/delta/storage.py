"""Accesses the storage of a table's files, which is either a directory or an object store accessed
through `deltalake`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow.fs as pa_fs  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from pyspark_barnabas.delta.options import DeltaOptions

if TYPE_CHECKING:
    from deltalake import DeltaTable


def open_table(options: DeltaOptions) -> DeltaTable | None:
    """Open the table's newest version, or return None if there is no table.

    Raises `BarnabasError` if `deltalake` cannot read it.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    storage = dict(options.storage)
    if not DeltaTable.is_deltatable(options.path, storage):
        return None
    try:
        return DeltaTable(options.path, storage_options=storage)
    except DeltaError as error:
        raise BarnabasError(
            f"{options.path} is a table that deltalake cannot open: {in_one_line(error)}"
        ) from error


def existing_table(options: DeltaOptions) -> DeltaTable:
    """Open the table.

    Raises `ConfigError` if the table does not exist, and the same errors as `open_table`.
    """
    parts = urlsplit(options.path)
    is_local = parts.scheme in ("", "file")
    path = Path(url2pathname(parts.path) if parts.scheme else options.path)
    # Otherwise, deltalake would use its own error message for a file, and one of two different
    # messages for a missing directory.
    table = None if is_local and not path.is_dir() else open_table(options)
    if table is None:
        raise ConfigError(f"{options.path}: there is no Delta table")
    return table


def filesystem(options: DeltaOptions) -> pa_fs.FileSystem:
    """Return the file system, rooted at the table's directory. The directory is created if it does
    not exist.
    """
    parts = urlsplit(options.path)
    if parts.scheme in ("", "file"):
        root = Path(url2pathname(parts.path) if parts.scheme else options.path).absolute()
        # Tasks write before the driver's first commit creates the table.
        root.mkdir(parents=True, exist_ok=True)
        return pa_fs.SubTreeFileSystem(str(root), pa_fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return pa_fs.PyFileSystem(DeltaStorageHandler(options.path, dict(options.storage)))
