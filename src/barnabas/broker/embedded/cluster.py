"""Several brokers in this process, for tests and notebooks: they replicate, elect and move.

    with barnabas.Cluster(brokers=3) as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})

All run on one loop in one thread and share one metadata tree, each in a session of its own; among
each other they use sockets, as brokers on several machines do. So it shows what a cluster does, and
not how fast: for that, and for `kill -9`, start processes (`barnabas cluster start`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.broker.embedded.life import DEFAULTS, EmbeddedLife, Setting, texts
from barnabas.broker.server import Server
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.config.metrics_ports import metrics_port
from barnabas.errors import ConfigError

_METADATA = "metadata"


class Cluster(EmbeddedLife):
    """`brokers` brokers with the ids 1, 2, ... on free ports of 127.0.0.1.

    `data_dir`: has a directory for each broker and one for the metadata; None makes a temporary one
    that is removed at `stop`. `config`: Kafka's broker configs by their names, for all brokers, as
    texts, numbers or booleans (`group.initial.rebalance.delay.ms` is 0 by default);
    `broker_config`: for single brokers, by broker id, on top (`{1: {"broker.rack": "east"}}`).
    With `barnabas.metrics.port` in `config` broker 1 takes that port, the others the next ones.

    `start` raises ConfigError or OSError with one line that says what to do. A stopped cluster may
    be started again, on the same ports, and on the same data unless that was temporary.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | Path | None = None,
        config: Mapping[str, Setting] | None = None,
        broker_config: Mapping[int, Mapping[str, Setting]] | None = None,
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: at least one is needed")
        self.broker_ids = range(1, brokers + 1)
        self._config = texts(config)
        self._broker_config = {
            broker_id: texts(own) for broker_id, own in (broker_config or {}).items()
        }
        strangers = sorted(self._broker_config.keys() - set(self.broker_ids))
        if strangers:
            raise ConfigError(
                f"broker_config names broker {strangers[0]}: the cluster has 1 to {brokers}"
            )
        super().__init__("cluster", None if data_dir is None else Path(data_dir))
        self._store: EmbeddedStore | None = None
        self._servers: dict[int, Server] = {}
        self._ports: dict[int, int] = {}

    # ---- life ----

    def stop_broker(self, broker_id: int) -> None:
        """Stop one broker cleanly: it hands over its leaderships first (RE-13)."""
        server = self.server(broker_id)
        del self._servers[broker_id]
        self.thread.run(server.stop())

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker, on its old port and its old data."""
        if broker_id in self._servers or broker_id not in self.broker_ids:
            raise ConfigError(f"broker {broker_id} is running, or does not belong to this cluster")
        self.thread.run(self._start_broker(broker_id))

    # ---- while it runs ----

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:PORT,...` of the running brokers, for any Kafka client."""
        if self._thread is None:
            raise self._is_not_running()
        return ",".join(f"127.0.0.1:{self._ports[broker_id]}" for broker_id in self._servers)

    @property
    def store(self) -> EmbeddedStore:
        """The metadata of all brokers; to be touched on the cluster's loop only."""
        if self._store is None:
            raise self._is_not_running()
        return self._store

    @property
    def servers(self) -> tuple[Server, ...]:
        """The brokers that run; to be touched on the cluster's loop only."""
        return tuple(self._servers.values())

    def server(self, broker_id: int) -> Server:
        """A running broker; to be used on the cluster's loop only."""
        server = self._servers.get(broker_id)
        if server is None:
            raise ConfigError(f"broker {broker_id} is not running")
        return server

    # ---- on its loop ----

    async def _start(self) -> None:
        """Return when every broker serves, and knows all the others."""
        directory = self.data_dir / _METADATA
        directory.mkdir(parents=True, exist_ok=True)
        # Temporary metadata need not survive this process, so it is not written to a disk.
        self._store = EmbeddedStore() if self._temporary_dir else EmbeddedStore.open(directory)
        for broker_id in self.broker_ids:
            await self._start_broker(broker_id)
        for server in self._servers.values():
            await server.knows_brokers(self.broker_ids)

    async def _start_broker(self, broker_id: int) -> None:
        assert self._store is not None
        config = self._config_of(self._properties(broker_id))
        server = Server(config, store=self._store.session())
        await server.start()
        self._servers[broker_id] = server
        self._ports[broker_id] = server.port

    def _properties(self, broker_id: int) -> dict[str, str]:
        size = len(self.broker_ids)
        return {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports.get(broker_id, 0)}",
            "log.dirs": str(self.data_dir / f"broker-{broker_id}"),
            "offsets.topic.replication.factor": str(min(3, size)),
            "transaction.state.log.replication.factor": str(min(3, size)),
            "transaction.state.log.min.isr": str(min(2, size)),
            **DEFAULTS,
            **self._config,
            **metrics_port(self._config, broker_id),
            **self._broker_config.get(broker_id, {}),
        }

    async def _stop(self) -> None:
        for each in self._servers.values():
            await each.ends_with_all()
        for broker_id in reversed(self.broker_ids):
            server = self._servers.pop(broker_id, None)
            if server is not None:
                await server.stop(gives_away=False)  # all of them stop
        if self._store is not None:
            await self._store.close()
            self._store = None
