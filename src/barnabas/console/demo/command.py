"""Implements `barnabas demo`."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import click

from barnabas.cli.options import run_client
from barnabas.console.command import DEFAULT_PORT
from barnabas.console.demo.script import Step
from barnabas.console.demo.stage import Stage
from barnabas.console.race import race
from barnabas.console.server import Address, Mode, serve

_HOST: Final = "localhost"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    metavar="PORT",
    help="The port of the console; 0 selects a free one.",
)
def demo(port: int) -> None:
    """Run an eventful cluster, and the console that explains what happens in it.

    The cluster has three brokers on free ports, two topics and four groups. Members join, leave and
    are killed; a broker is killed and restarted, and later paused; one consumer is too slow. Each
    step is printed together with the address of the page that explains it. Press Ctrl-C to end the
    demonstration and remove its data.

    \b
    Examples:
      barnabas demo
      barnabas demo --port 9000
    """
    # Warnings from brokers and clients about the faults would hide the steps.
    logging.getLogger("barnabas").setLevel(logging.ERROR)
    run_client(_run(port), None)


async def _run(port: int) -> None:
    async with Stage() as stage:
        click.echo(f"Three brokers are running: {stage.servers}")
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await race(
            serve(stage.servers, Mode({}), Address(_HOST, port), ready.set_result),
            _play(stage, ready),
        )


async def _play(stage: Stage, ready: asyncio.Future[str]) -> None:
    url = await ready
    click.echo(f"Open the console: {url}    (Ctrl-C ends the demonstration)\n")
    while True:
        await stage.play(lambda step: _report(step, url))


def _report(step: Step, url: str) -> None:
    minutes, seconds = divmod(step.at_s, 60)
    click.echo(f"{minutes}:{seconds:02}  {step.says}")
    if step.see:
        click.echo(f"      {url}{step.see}")
