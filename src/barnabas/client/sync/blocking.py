"""The base of the blocking clients: a client on a loop in a thread of its own."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Self, TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ClientClosed
from barnabas.client.loop_thread import LoopThread
from barnabas.client.producer.producer import Producer

C = TypeVar("C", Producer, Consumer, Admin)


class BlockingClient(Generic[C]):
    """Start, close and context manager, the same for all three."""

    def __init__(self, client: C) -> None:
        self._client: C = client
        self._thread = LoopThread(f"barnabas-{type(client).__name__.lower()}")
        try:
            self._thread.run(client.start())
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Finish and disconnect; more calls do nothing."""
        try:
            self._thread.run(self._client.close())
        except ClientClosed:
            return
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
