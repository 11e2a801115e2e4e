"""Implements `barnabas track`, which receives events from pages and apps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import run_client
from barnabas.errors import ConfigError
from barnabas.extras import install_line

_ORIGIN: Final = re.compile(r"\*|https?://[^/\s]+")


class _Rate(click.IntRange):
    """Reads a number, or 'none', which stands for 0."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(0 if value == "none" else value, param, ctx)


@command_group()
def track() -> None:
    """Receive what visitors of pages and apps do, as events.

    \b
    Example:
      barnabas track serve --allow-origin https://shop.example
    """


@track.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8_081,
    show_default=True,
    metavar="PORT",
    help="The port to listen on; 0 selects a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on. Let a proxy stand between it and the internet, for TLS and "
    "limits on rates.",
)
@click.option(
    "--topic",
    default="events",
    show_default=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="The topic of the events. Those that are not valid go to NAME-rejected.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Accept events from pages of this origin, such as https://shop.example; may be repeated. "
    "'*' stands for every origin.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="PATH",
    help="Keep a journal in this directory: events are answered once they are on its disk, and "
    "sent to the brokers afterwards, exactly once. Each server needs its own.",
)
@click.option(
    "--dir-mib",
    type=click.IntRange(min=8),
    default=256,
    show_default=True,
    metavar="MIB",
    help="The maximum size of the journal. Once unsent events fill it, the answer is 503.",
)
@click.option(
    "--rate",
    type=_Rate(min=0),
    default=100,
    show_default=True,
    metavar="COUNT",
    help="How many requests per second each network (/24 of IPv4, /48 of IPv6) may send, with "
    "bursts of ten times as many. 'none' or 0 stands for no limit.",
)
@click.option(
    "--trust-forwarded",
    is_flag=True,
    help="Take the client's address from X-Forwarded-For. Only for a server that is reached "
    "through a proxy alone, because others can forge it.",
)
@click.option(
    "--countries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add the country of each request's address to its events, from a database in MaxMind's DB "
    "format, such as GeoLite2-Country.mmdb. The address itself is not kept.",
)
@bootstrap_server
def serve(
    port: int, host: str, topic: str, origins: tuple[str, ...], servers: str, **given: Any
) -> None:
    """Receive batches of events at POST /v1/events, and send each event to a topic.

    A batch is answered with 200 once the brokers have acknowledged its events (acks=all). While
    no broker is available, the answer is 503; the sender must keep its events, and send them again
    later. With --dir, a batch is answered once it is in a journal on the local disk. An event that
    is sent again with the same id is not written again. Stop the command with Ctrl-C or SIGTERM.

    \b
    Examples:
      barnabas track serve --allow-origin https://shop.example
      barnabas track serve --bootstrap-server kafka1:9092 --topic clicks --port 9000
      barnabas track serve --dir /var/lib/barnabas-track
    """
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise click.UsageError(
                f"--allow-origin {origin}: not an origin, such as https://shop.example, without a"
                " path"
            )
    from barnabas_collector.listen_address import ListenAddress

    try:
        from barnabas_track import application, countries, rate_limits, server
    except ImportError as error:
        raise ConfigError(f"{error}: {install_line('track')}") from None
    address = ListenAddress(host, port)
    most_bytes = given["dir_mib"] << 20
    trust_forwarded, limits = given["trust_forwarded"], None
    if rate := given["rate"]:
        limits = rate_limits.RateLimits(rate, trust_forwarded=trust_forwarded)
    database = None if given["countries"] is None else countries.Countries(given["countries"])
    endpoint = application.Endpoint(
        topic, origins, given["directory"], most_bytes, limits, database, trust_forwarded
    )
    run_client(server.serve(servers, client_options(), endpoint, address, _report), None)


def _report(url: str) -> None:
    click.echo(f"barnabas track ready on {url}")
