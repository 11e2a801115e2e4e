"""Defines the pipeline of system logs."""

from __future__ import annotations

from pathlib import Path

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import in_zone
from barnabas_formats.user_formats import read_formats
from barnabas_pipeline.application import Application, Report
from barnabas_pipeline.logs.collecting import check_input, collecting
from barnabas_pipeline.logs.definition import SystemLogs
from barnabas_pipeline.logs.figures import read_figures
from barnabas_pipeline.logs.generator import write_logs
from barnabas_pipeline.logs.headlines import summary
from barnabas_pipeline.logs.report import write_report
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.rejections import nothing_known
from barnabas_pipeline.view import View


def system_logs(formats: Path | None = None, zone: str = "UTC") -> Application:
    """Return the pipeline. `formats`: a file with the user's formats, which are tried before the
    built-in formats. `zone`: the zone of times without an offset, in formats that define no zone.

    Raises `ConfigError` or `OSError` if that file or the zone is invalid.
    """
    own = read_formats(formats) if formats is not None else ()
    return Application(
        definition=SystemLogs(in_zone((*own, *catalogue("system")), zone)),
        title="barnabas system logs",
        topic="system-logs",
        partitions=3,
        generate=write_logs,
        generated="logs-{seed}-{lines}",
        check_input=check_input,
        collecting=collecting,
        write_report=_write_report,
        counted="records",
        expected="lines of text are expected, and formats whose times are possible",
    )


def _write_report(view: View, page: Path, options: PageOptions) -> Report:
    figures = read_figures(view, show_addresses=options.show_addresses)
    write_report(page, figures, options)
    failure = nothing_known(figures.lines, figures.raw_lines, figures.raw_samples)
    return Report(figures.accounts, summary(figures), figures.dead_letters, failure)
