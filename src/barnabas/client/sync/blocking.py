"""Provides the base class of the blocking clients, each of which runs an event loop in a thread.

Nothing on that loop refers to the blocking client. If a program drops the client, it is therefore
collected, and its `Farewell` finishes the remaining work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ClientClosed
from barnabas.client.loop_thread import LoopThread
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.farewell import Farewell

C = TypeVar("C", Producer, Consumer, Admin)
T = TypeVar("T", bound=type)


def documented_by(core: type) -> Callable[[T], T]:
    """Decorate a class so that methods without a docstring inherit the one of `core`'s method.

    Only `await` is removed from the examples.
    """

    def decorate(blocking: T) -> T:
        for name, method in vars(blocking).items():
            if callable(method) and not name.startswith("_") and not method.__doc__:
                method.__doc__ = (getattr(core, name).__doc__ or "").replace("await ", "")
        return blocking

    return decorate


class BlockingClient(Generic[C]):
    """Starts and closes a blocking client of any kind, and makes it a context manager."""

    def __init__(self, client: C) -> None:
        self._client: C = client
        self._thread = LoopThread(f"barnabas-{type(client).__name__.lower()}")
        try:
            self._thread.run(client.start())
        except BaseException:
            self._thread.stop()
            raise
        self._farewell = Farewell(f"Sync{client!r}", self._thread, partial(_close, client))

    def close(self) -> None:
        """Finish the work and disconnect. Further calls do nothing."""
        try:
            self._thread.run(self._client.close())
        except ClientClosed:
            return
        finally:
            self._thread.stop()
            self._farewell.cancel()

    def __del__(self) -> None:
        # None means never connected. Do not use `__dict__`; see `Producer.__del__`.
        farewell: Farewell | None = getattr(self, "_farewell", None)
        if farewell is not None and farewell.is_due:
            unclosed = f"unclosed {self!r}: use it in a with block"
            warnings.warn(unclosed, ResourceWarning, stacklevel=2, source=self)
            farewell.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _close(client: Producer | Consumer | Admin) -> int:
    """Close a dropped client on its loop. Returns 0, because no records are lost."""
    if isinstance(client, Consumer):
        await client.close(autocommit=False)  # the last polled records may be unprocessed
    else:
        await client.close()
    return 0
