"""Defines the system log pipeline."""

from __future__ import annotations

from pathlib import Path

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import in_zone
from barnabas_formats.otlp import check_protobuf
from barnabas_formats.otlp_request import OTLP_PROTO
from barnabas_formats.user_formats import of_kind, read_formats
from barnabas_pipeline.application import Application
from barnabas_pipeline.logs.collecting import check_input, collecting
from barnabas_pipeline.logs.definition import SystemLogs
from barnabas_pipeline.logs.generator import write_logs
from barnabas_pipeline.logs.log_records import AUTO, LINES
from barnabas_pipeline.logs.report import write_page


def system_logs(
    formats: Path | None = None, zone: str = "UTC", encoding: str = LINES
) -> Application:
    """Return the pipeline.

    `formats`: a file with the user's formats, which are tried before the built-in formats. `zone`:
    the zone of times without an offset, in formats that define no zone. `encoding`: the encoding of
    records whose headers do not specify one, from `log_records.ENCODINGS`.

    Raises `ConfigError` or `OSError` if that file or the zone is invalid, or if a package needed to
    decode this encoding is not installed.
    """
    if encoding in (AUTO, OTLP_PROTO):
        check_protobuf()  # fail before a broker and Spark are started
    own = of_kind(read_formats(formats), "system") if formats is not None else ()
    return Application(
        definition=SystemLogs(in_zone((*own, *catalogue("system")), zone), encoding=encoding),
        title="barnabas system logs",
        topic="system-logs",
        partitions=3,
        generate=write_logs,
        generated="logs-{seed}-{lines}",
        check_input=check_input,
        collecting=collecting,
        write_report=write_page,
        counted="records",
        expected="lines of text are expected, and formats whose times are possible",
    )
