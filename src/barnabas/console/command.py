"""Implements `barnabas console`, the web console of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from barnabas.cli.complaint import warn
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.options import Duration, run_client
from barnabas.console.pipeline_api import MOST_FOLDERS
from barnabas.console.server import Address, Mode, is_local, serve
from barnabas.console.sign_in.admission import Lifetime

DEFAULT_PORT: Final = 8080


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    metavar="PORT",
    help="The port of the web page; 0 selects a free one.",
)
@click.option(
    "--host",
    default="localhost",
    show_default=True,
    metavar="HOST",
    help="The address or name to listen on. Without --sign-in, whoever reaches it sees the "
    "cluster: there is no authentication.",
)
@click.option(
    "--write",
    "may_write",
    is_flag=True,
    help="Let the page change the cluster: topics, configs, offsets, leaders and single records. "
    "Each change is previewed first.",
)
@click.option(
    "--pipeline",
    "pipelines",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Also show the pages and the accounts of a pipeline, from the folder that it writes to, "
    "and explore its tables, if the extra `pages` is installed. May be repeated.",
)
@click.option(
    "--sign-in",
    "signs_in",
    is_flag=True,
    is_eager=True,
    help="Let each browser sign in with a user and a password of the cluster, whose ACLs then "
    "decide what it sees and does. Needs SASL with PLAIN or SCRAM.",
)
@click.option(
    "--session-idle",
    "idle_s",
    type=Duration(),
    default="30m",
    show_default=True,
    metavar="TIME",
    help="With --sign-in, end a session after this time without a request.",
)
@click.option(
    "--session-length",
    "longest_s",
    type=Duration(),
    default="12h",
    show_default=True,
    metavar="TIME",
    help="With --sign-in, end every session after this time.",
)
@bootstrap_server
def console(
    port: int,
    host: str,
    may_write: bool,
    pipelines: tuple[Path, ...],
    signs_in: bool,
    servers: str,
    **seconds: float,
) -> None:
    """Serve a web page that shows a cluster: the problems that need attention, and its brokers,
    topics, messages, groups, transactions, events and ACLs.

    The page cannot change the cluster unless --write is given; each change is then logged to
    standard error. The page shows what the user of --command-config is allowed to see or, with
    --sign-in, what the signed-in user is allowed to see. It works with every cluster that speaks
    Kafka's protocol; with Barnabas, it also shows the causes of problems. The cluster is polled
    only while a page is open. Stop the command with Ctrl-C or SIGTERM.

    \b
    Examples:
      barnabas console
      barnabas console --bootstrap-server kafka1:9092 --port 9000
      barnabas console --profile production --host 10.0.0.5
      barnabas console --write
      barnabas console --pipeline out --pipeline out-logs
      barnabas console --sign-in --command-config client.properties
    """
    if len(pipelines) > MOST_FOLDERS:
        raise click.UsageError(f"--pipeline: give at most {MOST_FOLDERS} folders")
    if pipelines and signs_in:
        raise click.UsageError(
            "--pipeline cannot be combined with --sign-in, because no ACL protects a folder: start "
            "a second console for the pipelines"
        )
    if not is_local(host) and signs_in:
        warn(
            "barnabas console",
            f"--host {host}: passwords and messages travel unencrypted between browsers and the "
            "console; put a proxy with TLS in front of it",
        )
    elif not is_local(host):
        does = "sees and changes" if may_write else "sees"
        warn(
            "barnabas console",
            f"--host {host}: everyone who can reach this address {does} the cluster and its "
            "messages, without authentication",
        )
    mode = Mode(client_options(), may_write, pipelines, signs_in, Lifetime(**seconds))
    run_client(serve(servers, mode, Address(host, port), _report), None)


def _report(url: str) -> None:
    click.echo(f"barnabas console ready on {url}")
