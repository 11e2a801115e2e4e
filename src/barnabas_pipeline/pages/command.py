"""Implements `barnabas pages`, which serves the tables of a pipeline as pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from barnabas.cli.complaint import warn
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import run_client
from barnabas.console.server import Address, is_local
from barnabas_pipeline.pages.now_feed import TOPICS, Cluster
from barnabas_pipeline.pages.server import serve as serve_pages
from barnabas_pipeline.pages.source import Options, Source
from barnabas_pipeline.tracking.funnels import parse_funnel
from barnabas_pipeline.tracking.goals import parse_goals
from barnabas_track.countries import Countries


@command_group()
def pages() -> None:
    """Serve a pipeline's tables as pages that clicks filter.

    \b
    Example:
      barnabas pages serve out
    """


@pages.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), default="out")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8_082,
    show_default=True,
    metavar="PORT",
    help="The port of the web page; 0 selects a free one.",
)
@click.option(
    "--host",
    default="localhost",
    show_default=True,
    metavar="HOST",
    help="The address or name to listen on. Whoever reaches it sees the pages: there is no "
    "authentication.",
)
@click.option(
    "--funnel",
    "funnels",
    multiple=True,
    metavar="FUNNEL",
    help="Steps that the page shows from the start, such as "
    "'Order: /basket > /checkout > purchase within 2 h'; may be repeated.",
)
@click.option(
    "--goal",
    "goals",
    multiple=True,
    metavar="GOAL",
    help="A page or an event to count in events of pages and apps, such as 'Order: purchase' or "
    "'Signed up: /welcome'; may be repeated.",
)
@click.option(
    "--show-addresses",
    is_flag=True,
    help="Show full network addresses instead of only their networks.",
)
@click.option(
    "--countries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For access logs, show the countries of the addresses, from a database in MaxMind's DB "
    "format, such as GeoLite2-Country.mmdb.",
)
@click.option(
    "--topic",
    metavar="NAME",
    shell_complete=topic_names,
    help="The topic of the live view. Default: the one from which the pipeline reads.",
)
@bootstrap_server
@click.pass_context
def serve(
    context: click.Context, /, out: Path, topic: str | None, servers: str, host: str, **given: Any
) -> None:
    """Serve the tables in OUT, the folder to which `python -m barnabas_pipeline run` writes.

    A click on a row filters all cards. The address contains the filters, so it can be saved and
    sent to others. A running job may write to the tables at the same time. With --bootstrap-server,
    the page also shows the last half hour, read from the topic. Spark is not needed. Stop the
    command with Ctrl-C or SIGTERM.

    \b
    Examples:
      barnabas pages serve out
      barnabas pages serve out --bootstrap-server localhost:9092
      barnabas pages serve out-logs --port 9000
    """
    funnels = [parse_funnel(text) for text in given["funnels"]]
    countries = None if given["countries"] is None else Countries(given["countries"])
    goals = parse_goals(given["goals"])
    source = Source(out, Options(funnels, goals, given["show_addresses"], countries))
    if not is_local(host):
        warn(
            "barnabas pages",
            f"--host {host}: everyone who can reach this address sees the pages, without "
            "authentication",
        )
    cluster = None
    if context.get_parameter_source("servers") is not ParameterSource.DEFAULT:
        cluster = Cluster(servers, client_options(), topic or TOPICS[source.kind])
    elif topic is not None:
        raise click.UsageError("--topic needs --bootstrap-server")
    address = Address(host, given["port"])
    if run_client(serve_pages(source, cluster, address, _report), None):
        # Python would wait for the thread, which may need seconds for the answer to a request.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _report(url: str) -> None:
    click.echo(f"barnabas pages ready on {url}")
