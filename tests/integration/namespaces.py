"""A network of the test's own, whose wires can be cut: a namespace for each broker, and a bridge.

The bridge's side is the hub: there are ZooKeeper and the clients. Who reaches whom is a matter of
neighbour entries, which are all set by hand: a wire is cut by a hardware address that no host has,
so that packets get lost without a word, in one direction or in both.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.raw_client import RawClient

HUB = 0

_NOWHERE = "02:00:00:00:ff:ff"
_CLONE_NEWNET = 0x40000000
_TIMEOUT_S = 120


class Network:
    """Places 1 to `size` and the hub; each has an address that the others know."""

    def __init__(self, size: int) -> None:
        self._mark = os.getpid() % 10_000
        self._places = range(size + 1)
        self._bridge = f"bb{self._mark}"

    def address(self, place: int) -> str:
        # Of the range that is set apart for trials of this kind.
        return f"198.18.{self._mark % 256}.{place or 254}"

    def namespace(self, place: int) -> str:
        return f"barnabas-{self._mark}-{place}"

    def _wire(self, place: int) -> str:
        return f"bw{self._mark}-{place}"

    def build(self) -> None:
        """Skips the test where that is not allowed."""
        try:
            _ip("link", "add", self._bridge, "address", _hardware(HUB), "type", "bridge")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"network namespaces need root and `ip`: {error}")
        _ip("addr", "add", f"{self.address(HUB)}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for place in self._places[1:]:
            space, wire = self.namespace(place), self._wire(place)
            _ip("netns", "add", space)
            _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", wire, "master", self._bridge, "up")
            _ip("-n", space, "link", "set", "eth0", "address", _hardware(place), "up")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "addr", "add", f"{self.address(place)}/24", "dev", "eth0")
        self.heal()

    def remove(self) -> None:
        """Everything. The wires would go with the namespaces, but some time later."""
        for place in self._places[1:]:
            _ip("link", "del", self._wire(place), check=False)
            _ip("netns", "del", self.namespace(place), check=False)
        _ip("link", "del", self._bridge, check=False)

    def cut(self, place: int, *others: int) -> None:
        """Nothing gets from it to the others any more, nor back."""
        for other in others:
            self._point(place, other, _NOWHERE)
            self._point(other, place, _NOWHERE)

    def heal(self) -> None:
        """Everybody reaches everybody."""
        for place in self._places:
            for other in self._places:
                if place != other:
                    self._point(place, other, _hardware(other))

    def _point(self, place: int, other: int, hardware: str) -> None:
        where = ("-n", self.namespace(place)) if place else ()
        device = "eth0" if place else self._bridge
        entry = ("neigh", "replace", self.address(other), "dev", device, "lladdr", hardware)
        _ip(*where, *entry, "nud", "permanent")

    def connect_from(self, place: int, servers: str) -> RawClient:
        """A client that is at that place. Only the thread which connects has to be there."""
        found: list[RawClient] = []

        def connect() -> None:
            with Path("/run/netns", self.namespace(place)).open() as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            found.append(RawClient(servers, _TIMEOUT_S))

        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
        return found[0]


class PlacedBroker(BrokerProcess):
    """A broker in a namespace of its own."""

    def __init__(self, broker: BrokerProcess, network: Network, place: int, connect: str) -> None:
        self.address = network.address(place)
        super().__init__(
            broker.data_dir.parent,
            *broker.options,
            f"zookeeper.connect={connect}",
            f"listeners=PLAINTEXT://{self.address}:{broker.port}",
        )
        self.port = broker.port
        self.prefix = ("ip", "netns", "exec", network.namespace(place))

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.address}:{self.port}"


@contextlib.contextmanager
def networked_cluster(
    directory: Path, size: int, *options: str
) -> Iterator[tuple[ClusterProcess, Network]]:
    """A cluster whose wires can be cut; broker N is at place N."""
    network = Network(size)
    cluster = ClusterProcess(directory, size, *options)
    try:
        network.build()
        cluster.zookeeper = ZooKeeperProcess(directory, address=network.address(HUB))
        for place, broker in cluster.brokers.items():
            connect = cluster.zookeeper.connect
            cluster.brokers[place] = PlacedBroker(broker, network, place, connect)
        cluster.start()
        yield cluster, network
    finally:
        cluster.kill_all()
        network.remove()


def _hardware(place: int) -> str:
    return f"02:00:00:00:00:{place or 254:02x}"


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, timeout=_TIMEOUT_S)
