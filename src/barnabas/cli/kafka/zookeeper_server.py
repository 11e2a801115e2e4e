"""`zookeeper-server-start.sh` and `zookeeper-server-stop.sh`: what to do here instead."""

from __future__ import annotations

from barnabas.cli.kafka.options import Given, flags
from barnabas.cli.kafka.tool import Line, NotCovered, Tool

_START = (
    "a broker needs no ZooKeeper: `barnabas server start` keeps the metadata in its own directory "
    "unless zookeeper.connect is set. `barnabas cluster start` runs several brokers together with "
    "the ZooKeeper that they need. A ZooKeeper of its own is started as before, by the script of a "
    "Kafka or ZooKeeper distribution"
)
_STOP = (
    "Barnabas runs no ZooKeeper by itself: `barnabas cluster stop` stops that of a cluster which "
    "`barnabas cluster start` began; any other is stopped by the script of its distribution"
)


def _start(given: Given) -> list[Line]:
    raise NotCovered(_START)


def _stop(given: Given) -> list[Line]:
    raise NotCovered(_STOP)


def _run_start(given: Given) -> int:
    raise NotCovered(_START)


def _run_stop(given: Given) -> int:
    raise NotCovered(_STOP)


TOOLS = {
    "zookeeper-server-start": Tool(
        _START,
        flags("daemon"),
        _start,
        _run_start,
        runs_alone=True,
        operands="zookeeper.properties",
    ),
    "zookeeper-server-stop": Tool(
        _STOP, (), _stop, _run_stop, runs_alone=True, operands="[zookeeper.properties]"
    ),
}
