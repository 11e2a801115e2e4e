"""Manages the directory of a cluster on one machine: its brokers, their ports and their configs.

    cluster.json      the ports, which never change, and the configs of the last start
    zookeeper/        the cluster's metadata tree
    broker-1/ ...     each broker's log directory
    broker-1.log ...  the output of each process, in files that are replaced before they grow large
    secure/           certificates and passwords, with --secure

Every process has a `barnabas.pid` in its directory, and the command that started the cluster has
one in the top directory. Any process can therefore stop and restart a broker.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.server.pid_file import PidFile, read_pid_file
from barnabas.config.metrics_ports import METRICS_PORT, metrics_port
from barnabas.counted import counted
from barnabas.errors import BarnabasError

HOST = "127.0.0.1"
SESSION_MS = 6_000

_FILE_NAME = "cluster.json"
_VERSION = 1
_LAST_PORT = 65_535
_OWN_KEYS = ("broker.id", "listeners", "advertised.listeners", "log.dir", "log.dirs")


class CannotRun(BarnabasError):
    """Raised if a cluster cannot run; the message says why and what to do."""


class Plan(NamedTuple):
    """Holds all that is needed to start any process of a cluster."""

    directory: Path
    zookeeper_port: int
    ports: Mapping[int, int]  # the brokers' ports by id
    overrides: Mapping[str, str]  # configs from the command line
    is_secure: bool = False
    zookeeper_connect: str = ""
    """The ZooKeeper that the brokers use, if the cluster does not run its own."""

    @property
    def secure_directory(self) -> Path:
        """The directory of certificates and passwords, if the cluster is secure."""
        return self.directory / "secure"

    @property
    def zookeeper_directory(self) -> Path:
        return self.directory / "zookeeper"

    @property
    def zookeeper_address(self) -> str:
        return self.zookeeper_connect or f"{HOST}:{self.zookeeper_port}"

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(map(self.address, self.ports))

    def address(self, broker_id: int) -> str:
        return f"{HOST}:{self.ports[broker_id]}"

    def metrics_address(self, broker_id: int) -> str:
        """Return the address at which a broker serves `GET /metrics`, or "" if it serves none."""
        port = metrics_port(self.overrides, broker_id).get(METRICS_PORT)
        return f"{HOST}:{port}" if port is not None else ""

    def broker_directory(self, broker_id: int) -> Path:
        return self.directory / f"broker-{broker_id}"

    def configs(self, broker_id: int) -> dict[str, str]:
        """Return the configs of a broker in this cluster. Configs from the command line
        override the cluster's own."""
        return {
            **profile(len(self.ports)),
            **self.overrides,
            # These ports replace the one in the overrides, because each broker needs its own.
            **metrics_port(self.overrides, broker_id),
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.address(broker_id)}",
            "zookeeper.connect": self.zookeeper_address,
        }

    def running(self) -> dict[str, PidFile]:
        """Return the live processes by name: "broker 1", ..., with "zookeeper" last, if the
        cluster runs its own."""
        places = {f"broker {each}": self.broker_directory(each) for each in self.ports}
        places["zookeeper"] = self.zookeeper_directory
        recorded = {name: read_pid_file(place) for name, place in places.items()}
        return {name: each for name, each in recorded.items() if each is not None and each.is_alive}


def profile(count: int) -> dict[str, str]:
    """Return configs for `count` brokers. With three or more, the cluster survives the loss
    of one.
    """
    # With acks=all, three replicas survive the loss of one broker if two in sync are enough.
    replicas = str(min(3, count))
    min_isr = "2" if count >= 3 else "1"
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "group.initial.rebalance.delay.ms": "0",
        "controlled.shutdown.retry.backoff.ms": "500",
        "zookeeper.session.timeout.ms": str(SESSION_MS),
    }


def check_overrides(overrides: Mapping[str, str]) -> None:
    """Raise CannotRun if an override is a config that the cluster sets itself for each broker."""
    for key in overrides:
        if key in _OWN_KEYS or key == "zookeeper.connect":
            raise CannotRun(
                f"--override {key}: the cluster sets this config for each broker itself"
            )


def read_plan(directory: Path) -> Plan | None:
    """Return the plan stored in the directory, or None if there is none. Raises CannotRun."""
    path = directory / _FILE_NAME
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CannotRun(f"{path} is not JSON ({error}): remove it to get new ports") from error
    try:
        if stored["version"] != _VERSION:
            raise CannotRun(f"{path} has an unknown version: {stored['version']}")
        return Plan(
            directory,
            int(stored["zookeeper_port"]),
            {int(broker_id): int(port) for broker_id, port in stored["ports"].items()},
            {str(key): str(value) for key, value in stored["overrides"].items()},
            bool(stored.get("secure", False)),
            str(stored.get("zookeeper_connect", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CannotRun(
            f"{path} does not describe a cluster ({error!r}): remove it to get new ports"
        ) from error


def write_plan(plan: Plan) -> None:
    """Write the plan for the next start, atomically."""
    stored = {
        "version": _VERSION,
        "zookeeper_port": plan.zookeeper_port,
        "ports": plan.ports,
        "overrides": plan.overrides,
        "secure": plan.is_secure,
        "zookeeper_connect": plan.zookeeper_connect,
    }
    plan.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = plan.directory / _FILE_NAME
    # A rename replaces the file in one step, so a crash leaves either the old plan or the new one.
    written = path.with_suffix(".new")
    written.write_text(json.dumps(stored, indent=2) + "\n")
    written.replace(path)


def existing_plan(directory: Path) -> Plan:
    """Return the plan of the cluster in this directory. Raises CannotRun."""
    plan = read_plan(directory)
    if plan is None:
        raise CannotRun(
            f"there is no cluster in {directory}: use --dir to choose another directory, or "
            "`barnabas cluster start` to create one"
        )
    return plan


def make_plan(
    directory: Path, count: int | None, overrides: Mapping[str, str], first_port: int
) -> Plan:
    """Return the plan of an existing cluster, or of a new one with free ports, starting at
    `first_port`. The number of brokers may grow but not shrink. Raises CannotRun.
    """
    check_overrides(overrides)
    before = read_plan(directory)
    if before is None:
        wanted = 3 if count is None else count
        # Ports are chosen once and kept in cluster.json, so that clients find the cluster again
        # after a restart.
        free = _free_ports(first_port, _metrics_ports(overrides, wanted))
        ports = {broker_id: next(free) for broker_id in range(1, wanted + 1)}
        return Plan(directory, next(free), ports, overrides)
    had = len(before.ports)
    wanted = had if count is None else count
    # Some partitions may have replicas only on the omitted brokers.
    if wanted < had:
        raise CannotRun(
            f"the cluster in {directory} has {counted(had, 'broker')}, whose partitions would lose "
            f"replicas with only {wanted}: use another --dir"
        )
    taken = [before.zookeeper_port, *before.ports.values(), *_metrics_ports(overrides, wanted)]
    free = _free_ports(first_port, taken)
    added = {broker_id: next(free) for broker_id in range(had + 1, wanted + 1)}
    return before._replace(ports={**before.ports, **added}, overrides=overrides)


def _metrics_ports(overrides: Mapping[str, str], count: int) -> list[int]:
    settings = (metrics_port(overrides, broker_id) for broker_id in range(1, count + 1))
    return [int(each[METRICS_PORT]) for each in settings if each]


def _free_ports(first: int, taken: Iterable[int]) -> Iterator[int]:
    """Yield free ports, starting at `first`. Raises CannotRun if none is left."""
    avoided = frozenset(taken)
    yield from (
        port for port in range(first, _LAST_PORT + 1) if port not in avoided and _free(port)
    )
    raise CannotRun(f"no port from {first} up is free")


def _free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        # Bind the port as the broker does, so that a connection in TIME_WAIT does not make the port
        # seem occupied.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return True
    return False
