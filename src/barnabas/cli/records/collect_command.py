"""Implements `barnabas collect`, which sends each line of log files to a topic once, however the
files are rotated. It also sends standard input, syslog and OpenTelemetry logs.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import Duration, run_client
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.records.compression import CODEC_NAMES
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.joint_work import run_together
from barnabas_collector.listen_address import ListenAddress
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.receiving import Source, receive
from barnabas_collector.record_joiner import IsStart
from barnabas_collector.record_reader import INDENTED, record_start
from barnabas_collector.redaction import Redaction, Rule, read_rules
from barnabas_collector.shipment import Shipment, Shipped
from barnabas_collector.shipper import ship
from barnabas_collector.standard_input import StandardInput
from barnabas_collector.syslog_tcp import SyslogTcp
from barnabas_collector.syslog_udp import SyslogUdp
from barnabas_collector.tls_listening import TlsFiles, tls_context

_RULES = {"indented": INDENTED}
_AUTO = "auto"
_STANDARD_INPUT = "-"


@click.command()
@click.argument("paths", nargs=-1, metavar="[FILE|DIR|GLOB|-]...")
@click.option(
    "--topic",
    required=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="The topic to send to.",
)
@bootstrap_server
@click.option(
    "--name",
    metavar="NAME",
    help="Identifies this collector's positions. Collectors that run at the same time need "
    "different names, and a restarted one needs its old name. [default: this machine's name]",
)
@click.option(
    "--record-start",
    metavar="PATTERN",
    help="Lines that do not match this regular expression at their start continue a record; "
    "'auto' knows the formats of `barnabas formats list` and the stack traces of Java, Python, Go, "
    "Node and .NET; 'indented' stands for indented lines and stack traces.",
)
@click.option(
    "--compression",
    type=click.Choice(CODEC_NAMES),
    default="lz4",
    show_default=True,
    help="Compression of the record batches.",
)
@click.option(
    "--syslog-tcp",
    "tcp",
    multiple=True,
    metavar="HOST:PORT",
    help="Listen for syslog over TCP; may be repeated. Port 0: any free one.",
)
@click.option(
    "--syslog-udp",
    "udp",
    multiple=True,
    metavar="HOST:PORT",
    help="Listen for syslog over UDP.",
)
@click.option(
    "--syslog-tls",
    "tls",
    multiple=True,
    metavar="HOST:PORT",
    help="Listen for syslog over TLS (RFC 5425); may be repeated.",
)
@click.option(
    "--syslog-tls-cert",
    "tls_cert",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The certificate of --syslog-tls with its chain (PEM).",
)
@click.option(
    "--syslog-tls-key",
    "tls_key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Its private key (PEM). [default: in the file of --syslog-tls-cert]",
)
@click.option(
    "--syslog-tls-client-ca",
    "tls_client_ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Accept only senders with a certificate of this authority (PEM).",
)
@click.option(
    "--otlp-http",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Receive OpenTelemetry's logs over HTTP (OTLP); may be repeated. [default port: 4318]",
)
@click.option(
    "--otlp-grpc",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Receive OpenTelemetry's logs over gRPC (OTLP); may be repeated. [default port: 4317]",
)
@click.option(
    "--otlp-tls-cert",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Receive OTLP over TLS, with this certificate and its chain (PEM).",
)
@click.option(
    "--otlp-tls-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Its private key (PEM). [default: in the file of --otlp-tls-cert]",
)
@click.option(
    "--otlp-tls-client-ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Accept OTLP only from senders with a certificate of this authority (PEM).",
)
@click.option(
    "--positions-retention-minutes",
    "retention",
    type=click.IntRange(1),
    default=10_080,
    show_default=True,
    help="Forget the positions of files that have been missing for this long.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Of the files that a DIR or a GLOB finds, send only those that match, such as '*.log'; a "
    "pattern with a slash is compared with the whole path. May be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out files and directories that match. May be repeated.",
)
@click.option(
    "--recursive",
    "is_recursive",
    is_flag=True,
    help="Search each DIR and all directories below it; '**' in a GLOB does the same.",
)
@click.option(
    "--ignore-older",
    type=Duration(),
    metavar="TIME",
    help="Ignore files that were last written longer ago, such as 24h or 7d, until they are "
    "written again. Files of which lines have been sent are read on.",
)
@click.option(
    "--from-end",
    "from_end",
    is_flag=True,
    help="Start at the end of the files that exist when this collector first looks; later files "
    "are sent from their beginning.",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="REGEX=REPLACEMENT",
    help="Replace what matches, before it is sent, such as 'token\\=\\S+=token=***'; a backslash "
    "comes before each = of the expression (RE2). May be repeated.",
)
@click.option(
    "--redact-rules",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A TOML file of tables [[redact]] with pattern and replacement, applied before --redact.",
)
@click.option(
    "--journald",
    "has_journal",
    is_flag=True,
    help="Send the entries of systemd's journal, read with journalctl, as JSON objects.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve /metrics for Prometheus, /healthz and /readyz on this port of 127.0.0.1. Port 0: "
    "any free one.",
)
@click.option("--once", is_flag=True, help="Send the lines that exist now, and exit.")
def collect(paths: tuple[str, ...], servers: str, **given: Any) -> int:
    """Send each line of log files to a topic once, as soon as it is written.

    With --journald, it also sends each entry of systemd's journal once.

    With -, it sends the lines of standard input until its end. With --syslog-tcp, --syslog-tls or
    --syslog-udp, it sends syslog messages (RFC 5424 or 3164) as they arrive.

    With --otlp-http or --otlp-grpc, it receives OpenTelemetry's logs. It confirms them to a sender
    once the brokers have acknowledged them. The sender keeps them until then, so none is lost.

    Files may be rotated in any of the usual ways: renamed, copied and truncated, or compressed. The
    position in each file is written in the same transaction as its lines, so a collector that was
    killed continues after the last one. Readers must set isolation.level=read_committed. A quoted
    GLOB and a DIR are rescanned every second. Stop the command with Ctrl-C or SIGTERM.

    Standard input and sockets cannot be read twice, so their lines are sent at most once: lines
    that a broker has not acknowledged are lost if this process is killed, as are those in the
    kernel's buffers, and over UDP also those that arrive while there is no room. While no broker is
    available, it stops reading from standard input and TCP.

    \b
    Examples:
      barnabas collect /var/log/app.log --topic logs
      some-program | barnabas collect - --topic logs
      barnabas collect --journald --topic logs
      barnabas collect --syslog-tcp 0.0.0.0:5514 --syslog-udp 0.0.0.0:5514 --topic logs
      barnabas collect --otlp-http 0.0.0.0 --otlp-grpc 0.0.0.0 --topic otlp-logs
      barnabas collect /var/log '/srv/*/log/*.log' --topic logs --record-start auto
    """
    _check(paths, given)
    shipment = _shipment(servers, paths, given)
    began_s = time.monotonic()
    sources = _sources(shipment, paths, given)
    work = _collect(shipment, _logs(paths, given), sources, once=given["once"])
    port = given["metrics_port"]
    shipped = run_client(work if port is None else _with_metrics(shipment, port, work), None)
    click.echo(_summary(shipped, shipment.topic, time.monotonic() - began_s), err=True)
    return EXIT_FAILURE if shipped.refused else EXIT_OK


def _check(paths: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise UsageError if options contradict each other."""
    has_syslog = given["tcp"] or given["udp"] or given["tls"]
    has_otlp = given["otlp_http"] or given["otlp_grpc"]
    if not paths and not has_syslog and not has_otlp and not given["has_journal"]:
        raise click.UsageError(
            "name a file, a directory, a pattern, - for standard input, an address for syslog or"
            " OTLP, or --journald"
        )
    if given["once"] and (has_syslog or has_otlp):
        raise click.UsageError(
            f"--once: {'a syslog' if has_syslog else 'an OTLP'} address has no end"
        )
    if given["otlp_tls_cert"] is None and (given["otlp_tls_key"] or given["otlp_tls_client_ca"]):
        raise click.UsageError("--otlp-tls-key and --otlp-tls-client-ca need --otlp-tls-cert")
    if given["tls"] and given["tls_cert"] is None:
        raise click.UsageError("--syslog-tls needs --syslog-tls-cert")


def _shipment(servers: str, paths: Sequence[str], given: Mapping[str, Any]) -> Shipment:
    return Shipment(
        servers,
        given["topic"],
        given["name"] or _name_of_machine(is_shown=_has_positions(paths, given)),
        # The record headers contain this host, whatever the collector's name is.
        socket.gethostname(),
        CODEC_NAMES.index(given["compression"]),
        _rule(given["record_start"]),
        from_end=given["from_end"],
        has_journal=given["has_journal"],
        redact=_redaction(given["redact_rules"], given["redact"]),
        retention_s=given["retention"] * 60.0,
        metrics=CollectorMetrics(),
        client_options=client_options(),
    )


def _has_positions(paths: Sequence[str], given: Mapping[str, Any]) -> bool:
    return given["has_journal"] or any(path != _STANDARD_INPUT for path in paths)


def _logs(paths: Sequence[str], given: Mapping[str, Any]) -> LogPaths | None:
    """Return the log paths. There may be no path, but None means that no source has a position."""
    if not _has_positions(paths, given):
        return None
    return LogPaths(
        [path for path in paths if path != _STANDARD_INPUT],
        include=given["include"],
        exclude=given["exclude"],
        is_recursive=given["is_recursive"],
        ignore_older_s=given["ignore_older"],
    )


def _name_of_machine(*, is_shown: bool) -> str:
    """Return the default of --name. With `is_shown`, tell the user that file positions are stored
    under this name.
    """
    name = socket.gethostname()
    if is_shown:
        click.echo(
            f"positions are kept under this machine's name, {name}; if the name changes with each "
            "start, as in a container, everything is sent again: give --name",
            err=True,
        )
    return name


def _sources(shipment: Shipment, paths: Sequence[str], given: Mapping[str, Any]) -> list[Source]:
    tcp = [_address("--syslog-tcp", each) for each in given["tcp"]]
    udp = [_address("--syslog-udp", each) for each in given["udp"]]
    found: list[Source] = [
        *(SyslogTcp(each, shipment.host, _print_address) for each in tcp),
        *(SyslogUdp(each, shipment.host, _print_address) for each in udp),
    ]
    if given["tls"]:
        files = TlsFiles(given["tls_cert"], given["tls_key"], given["tls_client_ca"])
        found += [
            SyslogTcp(
                _address("--syslog-tls", each),
                shipment.host,
                _print_address,
                tls_context(files, "syslog"),
                shipment.metrics,
            )
            for each in given["tls"]
        ]
    found += _otlp_sources(shipment, given)
    if _STANDARD_INPUT in paths:
        found.append(StandardInput(shipment))
    return found


def _address(option: str, text: str, default_port: int | None = None) -> ListenAddress:
    try:
        return ListenAddress.parse(text, default_port)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from None


def _otlp_sources(shipment: Shipment, given: Mapping[str, Any]) -> Iterator[Source]:
    # These modules import packages that not every collector needs.
    from barnabas_collector import otlp_grpc, otlp_http

    tls = None
    if given["otlp_tls_cert"] is not None:
        tls = TlsFiles(*(given[f"otlp_tls_{name}"] for name in ("cert", "key", "client_ca")))
    for text in given["otlp_http"]:
        address = _address("--otlp-http", text, otlp_http.PORT)
        context = None if tls is None else tls_context(tls, "OTLP")
        yield otlp_http.OtlpHttp(address, shipment, _print_otlp_address, context)
    for text in given["otlp_grpc"]:
        address = _address("--otlp-grpc", text, otlp_grpc.PORT)
        yield otlp_grpc.OtlpGrpc(address, shipment, _print_otlp_address, tls)


def _print_otlp_address(address: str) -> None:
    click.echo(f"listening for OTLP on {address}", err=True)


def _print_address(address: str) -> None:
    click.echo(f"listening for syslog on {address}", err=True)


def _rule(pattern: str | None) -> IsStart | None:
    if pattern == _AUTO:
        from barnabas_formats.continuation import RecordStart  # compiles two hundred expressions

        return RecordStart()
    return None if pattern is None else record_start(_RULES.get(pattern, pattern))


def _redaction(path: Path | None, texts: Sequence[str]) -> Redaction | None:
    rules = [*(read_rules(path) if path is not None else ()), *map(Rule.parse, texts)]
    return Redaction(rules) if rules else None


async def _with_metrics(
    shipment: Shipment, port: int, work: Coroutine[Any, Any, Shipped]
) -> Shipped:
    assert shipment.metrics is not None
    try:
        listener = await shipment.metrics.serve(port)
    except BaseException:
        work.close()
        raise
    click.echo(f"metrics on 127.0.0.1:{listener.port}", err=True)
    try:
        return await work
    finally:
        listener.close()


async def _collect(
    shipment: Shipment, logs: LogPaths | None, sources: Sequence[Source], *, once: bool
) -> Shipped:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    # On either signal, send the lines that were read and commit their positions before ending.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    work = []
    if logs is not None:
        work.append(ship(shipment, logs, stopping, once=once))
    if sources:
        work.append(receive(shipment, sources, stopping, is_patient=not once))
    total = Shipped()
    for shipped in await run_together(stopping, *work):
        total = total.plus(shipped)
    return total


def _summary(shipped: Shipped, topic: str, took_s: float) -> str:
    size = counted(shipped.size_bytes, "byte")
    text = f"{counted(shipped.lines, 'record')} ({size}) to {topic} in {took_s:.2f} s"
    if shipped.transactions:
        text += f", {counted(shipped.transactions, 'transaction')}"
    if shipped.cut_lines:
        text += f"; {shipped.cut_lines:,} were too long and were cut"
    if shipped.refused:
        text += f"; {shipped.refused:,} were refused and are lost"
    if shipped.dropped:
        text += f"; {shipped.dropped:,} were dropped because there was no room"
    return text
