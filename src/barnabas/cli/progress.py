"""Shows a progress bar, but only on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from barnabas.counted import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """Shows a bar during the `with` block, if `wanted` and standard error is a terminal."""

    def __init__(self, size_bytes: int | None, *, wanted: bool) -> None:
        self._size_bytes = size_bytes
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        # Import rich only if there is something to draw.
        self._wanted = wanted and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if self._wanted:
            self._bar = _bar()
            self._task = self._bar.add_task("", total=self._size_bytes, records="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, size_bytes: int, records: int) -> None:
        """Record that `size_bytes` more bytes were read, and that `records` records are
        acknowledged in total.
        """
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=size_bytes, records=counted(records, "record"))


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    return Bar(
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[records]}"),
        console=Console(stderr=True),
        transient=True,
    )
