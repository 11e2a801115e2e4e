"""Implements `barnabas perf`, which measures a cluster with our client, in Python on one core.

The output matches that of Kafka's tools, so that scripts can parse it.
"""

from __future__ import annotations

from barnabas.cli.group import command_group
from barnabas.cli.perf.consume import consume
from barnabas.cli.perf.produce import produce


@command_group()
def perf() -> None:
    """Measure how fast a cluster accepts and serves records.

    \b
    Examples:
      barnabas perf produce test --num-records 1000000 --record-size 100 --partitions 6
      barnabas perf consume test --messages 1000000
    """


perf.add_command(produce)
perf.add_command(consume)
