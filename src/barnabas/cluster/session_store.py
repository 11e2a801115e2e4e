"""Provides a base class for metadata stores that stay open when their session ends."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.cluster.store import MetadataStore, SessionState


class SessionStore(MetadataStore):
    """Holds the current session and calls the listeners when its state changes."""

    def __init__(self, session_id: int, state: SessionState) -> None:
        self._session_id = session_id
        self._state = state
        self._listeners: list[Callable[[SessionState], None]] = []

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        return self._state

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        self._listeners.append(callback)

    def _notify(self) -> None:
        state = self._state
        for listener in list(self._listeners):
            listener(state)
