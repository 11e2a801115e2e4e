"""The storage of a table's files: a directory, or an object store through `deltalake`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow.fs as pa_fs  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from pyspark_barnabas.delta.options import DeltaOptions

if TYPE_CHECKING:
    from deltalake import DeltaTable


def open_table(options: DeltaOptions) -> DeltaTable | None:
    """The present table; None: there is none yet."""
    from deltalake import DeltaTable

    storage = dict(options.storage)
    if not DeltaTable.is_deltatable(options.path, storage):
        return None
    return DeltaTable(options.path, storage_options=storage)


def filesystem(options: DeltaOptions) -> pa_fs.FileSystem:
    """The file system, rooted at the table; creates a missing directory."""
    parts = urlsplit(options.path)
    if parts.scheme in ("", "file"):
        root = Path(url2pathname(parts.path) if parts.scheme else options.path).absolute()
        root.mkdir(parents=True, exist_ok=True)
        return pa_fs.SubTreeFileSystem(str(root), pa_fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return pa_fs.PyFileSystem(DeltaStorageHandler(options.path, dict(options.storage)))
