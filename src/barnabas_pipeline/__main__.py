"""Implements the command line of the pipelines, `python -m barnabas_pipeline`.

Exit codes: 0 on success, 1 on failure (with one line on standard error), 2 for an invalid command
line, 130 after Ctrl-C and 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.errors import BarnabasError, ConfigError
from barnabas.extras import install_line
from barnabas_pipeline.stop import Stop

if TYPE_CHECKING:
    from barnabas_pipeline.alerts.rules import Rules
    from barnabas_pipeline.application import Application

_DESCRIPTION = """\
Collects the lines of a web server's access log, or system log files, into a topic of an embedded
broker or of a running cluster, turns them into tables with Spark, and renders a report. A second
run with the same --out continues where the first one ended.
"""
_EXAMPLES = """\
examples:
  python -m barnabas_pipeline run                                a generated log
  python -m barnabas_pipeline run --input /var/log/apache2/access.log
  python -m barnabas_pipeline run --input access.log --service   run while the log grows
  python -m barnabas_pipeline run --service --bootstrap-servers 127.0.0.1:9092,127.0.0.1:9093
                                                                 into a cluster's topics
  python -m barnabas_pipeline run --pipeline logs --input /var/log --out out-logs
  python -m barnabas_pipeline run --pipeline events --no-input --service
        --bootstrap-servers localhost:9092       the events that barnabas track receives
  python -m barnabas_pipeline report                             only render the report again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    given = _parser().parse_args(arguments)
    stop = Stop()
    try:
        return _ACTIONS[given.command](given, stop)
    except KeyboardInterrupt:
        return _failed("stopped; run again to continue", 128 + stop.signal)
    except ImportError as error:
        return _failed(f"{error}: {install_line('pipeline')}")
    except BarnabasError as error:
        return _failed(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m barnabas_pipeline",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="collect, process, report")
    report = commands.add_parser("report", help="render the report again from the tables")
    for command in (run, report):
        command.add_argument(
            "--pipeline",
            choices=("behaviour", "events", "logs"),
            default="behaviour",
            help="behaviour: visitors, from a web server's access log; events: visitors, from the"
            " events that `barnabas track` receives; logs: systems, from their log files"
            " (default: behaviour)",
        )
        command.add_argument(
            "--funnel",
            action="append",
            default=[],
            metavar="FUNNEL",
            help="steps to count for --pipeline events, such as"
            " 'Order: /basket > /checkout > purchase within 2 h'; may be repeated",
        )
        command.add_argument(
            "--goal",
            action="append",
            default=[],
            metavar="GOAL",
            help="a page or an event to count for --pipeline events, such as 'Order: purchase' or"
            " 'Signed up: /welcome'; may be repeated",
        )
        command.add_argument(
            "--formats",
            type=Path,
            metavar="FILE",
            help="file of your own formats, of the pipeline's kind; see docs/formats.md",
        )
        command.add_argument(
            "--zone",
            metavar="ZONE",
            help="time zone of times without an offset, such as Europe/Vienna, for"
            " --pipeline logs or --formats (default: UTC)",
        )
        command.add_argument(
            "--out", type=Path, default=Path("out"), help="output directory (default: out)"
        )
        command.add_argument(
            "--show-addresses",
            action="store_true",
            help="print full network addresses in the report (default: only their networks,"
            " since reports get shared)",
        )
    _add_to_run(run)
    return parser


def _add_to_run(run: argparse.ArgumentParser) -> None:
    """Add the options that apply only to runs with a topic."""
    run.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="an access log; a file of events, one per line; a log file or a directory of them"
        " (default: generated)",
    )
    run.add_argument(
        "--no-input",
        action="store_true",
        help="collect nothing; process the lines that others send to the topic in the cluster of "
        "--bootstrap-servers",
    )
    run.add_argument(
        "--encoding",
        choices=("auto", "lines", "otlp_proto", "otlp_json"),
        help="encoding of records without the header otlp.encoding, for --pipeline logs: lines, "
        "or what the OpenTelemetry Collector's Kafka exporter writes; auto detects it from "
        "the beginning of each record (default: lines)",
    )
    run.add_argument("--lines", type=_positive, default=100_000, help="number of generated lines")
    run.add_argument("--seed", type=int, default=1926, help="random seed of the generated input")
    run.add_argument("--master", default="local[*]", help="Spark's master (default: local[*])")
    run.add_argument("--service", action="store_true", help="run until Ctrl-C")
    run.add_argument(
        "--alerts",
        type=Path,
        metavar="FILE",
        help="file of alert rules, which are evaluated after each report; see docs/alerts.md",
    )
    brokers = run.add_mutually_exclusive_group()
    brokers.add_argument(
        "--port", type=_port, default=0, help="the broker's port (default: a free one)"
    )
    brokers.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,...",
        help="a running cluster (default: this run starts its own broker); the pipeline's topics "
        "(web-access, events or system-logs, and -dead-letters) are created, with the cluster's "
        "default replication factor",
    )
    run.add_argument(
        "--command-config",
        metavar="FILE",
        help="a properties file of client configs for that cluster, such as security.protocol=SSL",
    )
    run.add_argument(
        "--batch",
        type=_positive,
        help="maximum records of a micro-batch (default: 250000; 1000 if --encoding is not lines,"
        " because a record may then hold thousands of log records)",
    )


def _run(given: argparse.Namespace, stop: Stop) -> int:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from barnabas_pipeline.run import Options, Run
    from barnabas_pipeline.workspace import Workspace

    options = Options(
        input=given.input,
        lines=given.lines,
        seed=given.seed,
        master=given.master,
        is_service=given.service,
        port=given.port,
        max_records_per_batch=given.batch or _most_records(given),
        bootstrap_servers=given.bootstrap_servers,
        show_addresses=given.show_addresses,
        is_fed_by_others=given.no_input,
        client_options=_client_options(given),
        alerts=_rules(given.alerts),
    )
    if given.no_input and (given.input or not given.bootstrap_servers):
        raise ConfigError("--no-input needs --bootstrap-servers, and cannot be used with --input")
    application = _application(given)
    stop.listen()
    with Workspace(given.out) as workspace:
        logging.raiseExceptions = False  # a full disk is reported once
        form = "%(asctime)s %(levelname)s %(name)s %(message)s"
        logging.basicConfig(filename=workspace.run_log, level=logging.INFO, format=form)
        try:
            return 0 if Run(application, options, workspace, stop).run() else 1
        except (PySparkException, Py4JError, BarnabasError, OSError) as error:
            # A full disk causes many different errors, all with the same remedy.
            if workspace.is_full():
                raise ConfigError(
                    f"the disk of {workspace.directory} is full: make room and run again, or "
                    "choose another directory with --out"
                ) from error
            if isinstance(error, PySparkException | Py4JError):
                what = f"Spark: {_essence(str(error))} (see {workspace.spark_log})"
                raise ConfigError(what) from error
            raise


def _most_records(given: argparse.Namespace) -> int:
    return 250_000 if given.encoding in (None, "lines") else 1_000


def _rules(path: Path | None) -> Rules | None:
    if path is None:
        return None
    from barnabas_pipeline.alerts.rules import read_rules

    return read_rules(path)


def _client_options(given: argparse.Namespace) -> dict[str, str]:
    """Return the client options from the --command-config file.

    Raises `ConfigError`.
    """
    if given.command_config is None:
        return {}
    if not given.bootstrap_servers:
        raise ConfigError(
            "--command-config needs --bootstrap-servers: the broker that this run starts needs "
            "no client configs"
        )
    from barnabas.client.config import ClientConfig, configure, of_every_client
    from barnabas.client.known_options import unknown_options
    from barnabas.config import load_properties

    properties = load_properties(given.command_config)
    options = of_every_client(properties)
    configure(ClientConfig, options)
    for line in unknown_options(properties):
        sys.stderr.write(f"--command-config {given.command_config}: warning: {line}\n")
    return {name.replace("_", "."): text for name, text in options.items()}


def _report(given: argparse.Namespace, stop: Stop) -> int:
    from barnabas_pipeline.page.page import PageOptions
    from barnabas_pipeline.snapshot import Snapshot

    application, tables = _application(given), given.out / "tables"
    snapshot = Snapshot(tables, application.definition.layout)
    if snapshot.control is None:
        raise ConfigError(f"no tables in {given.out}: run `python -m barnabas_pipeline run` first")
    path = given.out / "report.html"
    now = datetime.now().astimezone()
    application.write_report(snapshot, path, PageOptions(now, show_addresses=given.show_addresses))
    sys.stdout.write(f"{path}\n")
    return 0


def _application(given: argparse.Namespace) -> Application:
    if given.pipeline == "events":
        return _events(given)
    for option in ("funnel", "goal"):
        if getattr(given, option):
            raise ConfigError(f"--{option} is for --pipeline events")
    if given.pipeline == "logs":
        from barnabas_pipeline.logs.application import system_logs

        return system_logs(given.formats, given.zone or "UTC", _encoding(given) or "lines")
    from barnabas_pipeline.behaviour.application import user_behaviour

    if given.zone is not None and given.formats is None:
        raise ConfigError(
            "--zone is for --pipeline logs or --formats: in built-in access log formats,"
            " times have an offset or are in UTC"
        )
    if _encoding(given) is not None:
        raise ConfigError("--encoding is for --pipeline logs")
    return user_behaviour(given.formats, given.zone)


def _events(given: argparse.Namespace) -> Application:
    from barnabas_pipeline.tracking.access_hits import visitors_key
    from barnabas_pipeline.tracking.application import tracked_events
    from barnabas_pipeline.tracking.funnels import parse_funnel
    from barnabas_pipeline.tracking.goals import parse_goals

    for option in ("formats", "zone", "encoding", "alerts"):
        if getattr(given, option, None) is not None:
            raise ConfigError(f"--{option} is not for --pipeline events")
    funnels = [*map(parse_funnel, given.funnel)]
    key = visitors_key(given.out) if given.command == "run" else b""
    return tracked_events(funnels, parse_goals(given.goal), key)


def _encoding(given: argparse.Namespace) -> str | None:
    encoding: str | None = getattr(given, "encoding", None)  # `report` lacks this option
    return encoding


_ACTIONS: Mapping[str, Callable[[argparse.Namespace, Stop], int]] = {
    "run": _run,
    "report": _report,
}


def _essence(message: str) -> str:
    """Return the root cause from a Java or Python stack trace, or the first line if none is
    found."""
    raised = re.findall(r"^(?:[a-z_]\w*\.)*[A-Z]\w+: (\S.*)$", message, re.MULTILINE)
    return str(raised[-1]) if raised else message.strip().partition("\n")[0]


def _failed(why: str, code: int = 1) -> int:
    sys.stderr.write(f"barnabas: {why}\n")
    return code


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 65535")
    return number


if __name__ == "__main__":
    sys.exit(main())
