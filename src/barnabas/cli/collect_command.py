"""`barnabas collect`: log files into a topic, however they are rotated, each line once."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from typing import Any

import click

from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import bootstrap_server, run_client
from barnabas.collector.log_paths import LogPaths
from barnabas.collector.record_joiner import IsStart
from barnabas.collector.record_reader import INDENTED, record_start
from barnabas.collector.shipper import Shipment, Shipped, ship
from barnabas.records.compression import CODEC_NAMES

_RULES = {"indented": INDENTED}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|GLOB...")
@click.option("--topic", required=True, metavar="NAME", help="Where the lines go.")
@bootstrap_server
@click.option(
    "--name",
    default=socket.gethostname,
    metavar="NAME",
    help="By which this collector finds its positions again; each that runs at the same time needs "
    "its own. [default: this machine's name]",
)
@click.option(
    "--record-start",
    metavar="PATTERN",
    help="Lines that do not begin like this regular expression belong to the record before them; "
    "'indented' stands for stack traces.",
)
@click.option(
    "--compression",
    type=click.Choice(CODEC_NAMES),
    default="lz4",
    show_default=True,
    help="Of the record batches.",
)
@click.option("--once", is_flag=True, help="Send what there is, and end.")
def collect(paths: tuple[str, ...], servers: str, **given: Any) -> int:
    """Send the lines of log files to a topic as they are written, each of them once.

    Files may be rotated in any of the usual ways: renamed, copied and truncated, compressed. How
    far each was sent is written in the same transaction as its lines, so a collector that is killed
    goes on behind the last one; readers set isolation.level=read_committed. A quoted GLOB and a DIR
    are looked at again every second. Ends with Ctrl-C or SIGTERM.

    \b
    Examples:
      barnabas collect /var/log/app.log --topic logs
      barnabas collect /var/log '/srv/*/log/*.log' --topic logs --record-start indented
    """
    shipment = Shipment(
        servers,
        given["topic"],
        given["name"],
        socket.gethostname(),
        CODEC_NAMES.index(given["compression"]),
        _rule(given["record_start"]),
    )
    began_s = time.monotonic()
    shipped = run_client(_collect(shipment, LogPaths(paths), once=given["once"]))
    click.echo(_summary(shipped, shipment.topic, time.monotonic() - began_s), err=True)
    return EXIT_OK


def _rule(pattern: str | None) -> IsStart | None:
    return None if pattern is None else record_start(_RULES.get(pattern, pattern))


async def _collect(shipment: Shipment, paths: LogPaths, *, once: bool) -> Shipped:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return await ship(shipment, paths, stopping, once=once)


def _summary(shipped: Shipped, topic: str, took_s: float) -> str:
    text = (
        f"{shipped.lines:,} records ({shipped.size_bytes:,} bytes) to {topic} in {took_s:.2f} s, "
        f"{shipped.transactions:,} transactions"
    )
    if shipped.cut_lines:
        text += f"; of {shipped.cut_lines:,} that were too long only the beginnings were sent"
    return text
