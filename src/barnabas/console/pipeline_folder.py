"""Reads the output folder of a pipeline: the pages and their figures.

Anyone who can write to the folder could place a link to another file in it. Symbolic links within
the folder are therefore not followed, and only regular files are read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.console.pipeline_shapes import PipelineRow, Reason
from barnabas.console.problem import WebProblem

MOST_BYTES: Final = 33_554_432
"""The size of the largest file that is read."""
MOST_PAGES: Final = 20
_MOST_ENTRIES: Final = 10_000
_MOST_REASONS: Final = 20
_FIGURES: Final = "report.json"
_BATCHES: Final = ("tables", "control", "_delta_log")
_SERVED: Final = re.compile(
    r"(?!\.)[^/\\\0]+\.html|(?!\.)[^/\\\0]+-data/(?!\.)[^/\\\0]+\.(?:csv|json)"
)
_COUNTS: Final = ("read", "valid", "dead_letters", "sent_twice")


class _Account(NamedTuple):
    made_at: int
    counts: dict[str, int]
    reasons: list[Reason]


class PipelineFolder:
    """Represents one folder. Its files are read again whenever they have changed."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self._number = number
        self._accounts: dict[str, tuple[tuple[int, int, int], _Account]] = {}

    def rows(self) -> list[PipelineRow]:
        """Return a row for each page, or a single row that explains why there are no pages."""
        try:
            pages = self._pages()
        except FileNotFoundError:
            return [self._row(problem=f"there is no folder {self.path}: {_WRITES_IT}")]
        except NotADirectoryError:
            return [self._row(problem=f"{self.path} is not a folder: give the job's --out folder")]
        except OSError as error:
            return [self._row(problem=f"cannot read {self.path}: {error.strerror or error}")]
        batch_at = self._batch_at()
        if not pages:
            problem = f"{self.path} has no page yet: {_WRITES_IT}"
            return [self._row(problem=problem, batch_at=batch_at)]
        self._accounts = {page: each for page, each in self._accounts.items() if page in pages}
        return [self._page_row(page, batch_at) for page in pages]

    def read(self, name: str) -> bytes:
        """Return the content of a page or of one of the files next to it. Raises a `WebProblem`."""
        if not _SERVED.fullmatch(name) or not name.isprintable():
            raise WebProblem(404, f"there is no page {name[:100]!r} in this folder")
        try:
            with _opened(self.path, *name.split("/")) as descriptor:
                return _content(descriptor, name)
        except OSError as error:
            raise WebProblem(404, f"cannot read {name[:100]!r}: {_why(error)}") from None

    def _pages(self) -> list[str]:
        with os.scandir(self.path) as entries:
            names = [each.name for each in islice(entries, _MOST_ENTRIES)]
        fit = [name for name in names if _SERVED.fullmatch(name) and name.isprintable()]
        return sorted(fit)[:MOST_PAGES]

    def _batch_at(self) -> int | None:
        """Return the time of the newest commit to the state of the tables."""
        try:
            with _opened(self.path, *_BATCHES, is_folder=True) as log, os.scandir(log) as entries:
                times = [each.stat(follow_symlinks=False).st_mtime_ns for each in entries]
        except OSError:
            return None
        return max(times, default=0) // 1_000_000 or None

    def _page_row(self, page: str, batch_at: int | None) -> PipelineRow:
        row = self._row(page=page, batch_at=batch_at)
        try:
            with _opened(self.path, page) as descriptor:
                _check(descriptor, page)
            account = self._account(page)
        except WebProblem as problem:
            row["problem"] = str(problem)
            return row
        except OSError as error:
            row["problem"] = f"cannot read {page} and its figures: {_why(error)}"
            return row
        counts = account.counts
        row["made_at"], row["reasons"] = account.made_at, account.reasons
        row["read"], row["valid"] = counts["read"], counts["valid"]
        row["rejected"], row["sent_twice"] = counts["dead_letters"], counts["sent_twice"]
        row["balances"] = counts["read"] == sum(counts[name] for name in _COUNTS[1:])
        return row

    def _account(self, page: str) -> _Account:
        folder = f"{page.removesuffix('.html')}-data"
        where = f"{folder}/{_FIGURES}"
        try:
            with _opened(self.path, folder, _FIGURES) as descriptor:
                found = os.fstat(descriptor)
                version = found.st_mtime_ns, found.st_size, found.st_ino
                kept = self._accounts.get(page)
                if kept is not None and kept[0] == version:
                    return kept[1]
                content = _content(descriptor, where)
        except FileNotFoundError:
            raise WebProblem(
                404, f"{where} is missing: {page} is not a pipeline's page, or its run did not end"
            ) from None
        try:
            account = _account_of(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise WebProblem(
                422,
                f"{where} is not complete, or another program wrote it: wait until the job has "
                "written its page again, or run the report again",
            ) from None
        self._accounts[page] = version, account
        return account

    def _row(
        self, *, page: str = "", problem: str = "", batch_at: int | None = None
    ) -> PipelineRow:
        return PipelineRow(
            folder=str(self.path),
            number=self._number,
            page=page,
            problem=problem,
            made_at=None,
            batch_at=batch_at,
            read=None,
            valid=None,
            rejected=None,
            sent_twice=None,
            balances=None,
            reasons=[],
            explore="",
        )


_WRITES_IT: Final = (
    "the pipeline writes report.html there with its first results; give the folder of its --out"
)


@contextmanager
def _opened(folder: Path, *names: str, is_folder: bool = False) -> Iterator[int]:
    """Open a file below a folder without following a symbolic link. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, name in enumerate(names, 1):
            kind = os.O_DIRECTORY if is_folder or number < len(names) else os.O_NONBLOCK
            below = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _check(descriptor: int, name: str) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise WebProblem(404, f"{name} is not a regular file")
    if found.st_size > MOST_BYTES:
        raise WebProblem(
            413, f"{name} has {found.st_size} bytes; the console reads at most {MOST_BYTES}"
        )


def _content(descriptor: int, name: str) -> bytes:
    _check(descriptor, name)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(MOST_BYTES)


def _why(error: OSError) -> str:
    if Path(str(error.filename)).name and error.errno in _LINKS:
        return "it is a symbolic link, or not the file that it should be; links are not followed"
    return error.strerror or str(error)


_LINKS: Final = (errno.ENOTDIR, errno.ELOOP)  # a link to a folder gives ENOTDIR


def _account_of(figures: Any) -> _Account:
    """Return the account of the records from a page's figures. Raises ValueError, KeyError or
    TypeError.
    """
    # Access logs have a row for all files together, whereas other logs only have a row for each
    # file.
    files = [row for row in figures.get("files", ()) if row["file"] == "all"][:1]
    files = files or figures["accounts"]
    reasons = {
        row["reason"]: int(row.get("lines", row.get("records"))) for row in figures["dead_letters"]
    }
    made_at = datetime.fromisoformat(figures["made_at"])
    return _Account(
        int(made_at.timestamp() * 1_000),
        {name: sum(int(row[name]) for row in files) for name in _COUNTS},
        [
            Reason(reason=str(reason)[:500], records=records)
            for reason, records in sorted(reasons.items(), key=lambda one: (-one[1], str(one[0])))
        ][:_MOST_REASONS],
    )
