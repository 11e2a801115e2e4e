"""`barnabas perf`: measures a cluster by our own client, which is Python on one core.

The lines are those of Kafka's tools, so that what reads them goes on doing so.
"""

from __future__ import annotations

import click

from barnabas.cli.perf.consume import consume
from barnabas.cli.perf.produce import produce


@click.group()
def perf() -> None:
    """Measure how fast a cluster takes and gives records.

    \b
    Examples:
      barnabas perf produce test --num-records 1000000 --record-size 100 --partitions 6
      barnabas perf consume test --messages 1000000
    """


perf.add_command(produce)
perf.add_command(consume)
