"""The text of a file that was found, opened again if it is not held open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar, cast

from barnabas.errors import ConfigError
from barnabas_collector.extent import Extent
from barnabas_collector.log_file import LogFile

T = TypeVar("T")
Inode = tuple[int, int]

MISSING: Final = Extent(-3)


class FileText:
    """Implements `Text`. `is_fixed`: what it answered once stays true."""

    def __init__(
        self, path: Path, inode: Inode, held: Mapping[Inode, LogFile], *, is_fixed: bool
    ) -> None:
        self.path = path
        self._inode = inode
        self._held = held
        self._answers: dict[tuple[str, Extent], object] | None = {} if is_fixed else None

    def ends(self, extent: Extent) -> bool:
        return self._answer("ends", extent, lambda file: file.ends(extent), default=False)

    def holds(self, extent: Extent) -> bool:
        return self._answer("holds", extent, lambda file: file.holds(extent), default=False)

    def whole(self) -> Extent:
        return self._answer("whole", MISSING, LogFile.whole, default=MISSING)

    def _answer(self, what: str, extent: Extent, ask: Callable[[LogFile], T], *, default: T) -> T:
        if self._answers is not None and (what, extent) in self._answers:
            return cast(T, self._answers[what, extent])
        with self._open() as file:
            if file is None:
                return default
            answer = ask(file)
        if self._answers is not None:
            self._answers[what, extent] = answer
        return answer

    @contextmanager
    def _open(self) -> Iterator[LogFile | None]:
        """The file; None if it was removed or replaced since it was found."""
        if (held := self._held.get(self._inode)) is not None:
            yield held
            return
        try:
            file = LogFile(self.path)
        except ConfigError:
            yield None
            return
        try:
            yield file if (file.device, file.inode) == self._inode else None
        finally:
            file.close()
