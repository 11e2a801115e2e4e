"""A metadata store in front of another: a test overrides what is to be different."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.cluster.store import MetadataStore, Operation, SessionState, Znode


class ForwardingStore(MetadataStore):
    """Passes everything on."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    @property
    def session_id(self) -> int:
        return self._store.session_id

    @property
    def session_state(self) -> SessionState:
        return self._store.session_state

    async def read(self, path: str) -> Znode | None:
        return await self._store.read(path)

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return await self._store.read_many(paths)

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        return await self._store.commit(operations)

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        self._store.watch(path, callback)

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        self._store.on_session(callback)

    async def close(self) -> None:
        await self._store.close()
