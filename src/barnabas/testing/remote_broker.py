"""Gives tests a handle for a broker or cluster that runs elsewhere, similar to the handle of an
embedded broker.

with RemoteBroker("localhost:9092") as broker:
    broker.topic("orders").wait_for_records(3)
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from barnabas.client.config import parse_servers
from barnabas.testing.embedded.handle import BrokerHandle


class RemoteBroker(BrokerHandle):
    """A Barnabas or Kafka broker at `bootstrap_servers`. It connects on first use.

    Raises ConfigError for an invalid address.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        parse_servers(bootstrap_servers)
        self._bootstrap_servers = bootstrap_servers

    def __repr__(self) -> str:
        return f"RemoteBroker({self._bootstrap_servers!r})"

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

    def close(self) -> None:
        """Close the clients; the broker keeps running."""
        self._close_handed_out()
        self._hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
