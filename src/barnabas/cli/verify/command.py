"""Implements `barnabas verify`, which checks that outputs contain each input record exactly
once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import bootstrap_server
from barnabas.cli.groups.instants import BadInstant, instant_ms
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client, storage, storage_options
from barnabas.cli.progress import Progress
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.extras import install_line

if TYPE_CHECKING:
    from barnabas.cli.verify.compare import Verdict, Wanted
    from barnabas.cli.verify.read import Names

_HEADERS = "source.topic,source.partition,source.offset"
_COLUMNS = "topic,partition,offset"
_KINDS = {
    "lost": ("record", "without a row"),
    "doubled": ("record", "with more than one row"),
    "unfounded": ("row", "without a record, such as one that was aborted or has been deleted"),
    "unmarked": ("row", "that name{s} no record"),
}
_KINDS_OF_VALUES = {
    "lost": ("record", "whose {by} is missing or occurs too rarely"),
    "doubled": ("distinct {by}", "that occur{s} more often than in the source"),
    "unfounded": ("row", "whose {by} no record of the source has"),
}


@click.command()
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    metavar="TOPIC",
    help="The topic that was read; may be repeated.",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    required=True,
    metavar="TOPIC|TABLE",
    help="The output; may be repeated. Together, the outputs must contain each record once. The "
    "path of a Delta table contains a slash: ./events, s3://bucket/events.",
)
@click.option(
    "--by",
    type=click.Choice(("offset", "key", "value")),
    default="offset",
    show_default=True,
    help="What identifies the record of a row.",
)
@click.option(
    "--headers",
    default=_HEADERS,
    show_default=True,
    metavar="TOPIC,PARTITION,OFFSET",
    help="Headers of a sink topic that identify it, as text; for a single source, two are enough.",
)
@click.option(
    "--columns",
    default=_COLUMNS,
    show_default=True,
    metavar="TOPIC,PARTITION,OFFSET",
    help="Columns of a table that identify it; for a single source, two are enough.",
)
@click.option(
    "--value-column",
    metavar="NAME",
    help="The column of a table, with --by key or value; default: the column of that name.",
)
@click.option(
    "--until",
    metavar="INSTANT",
    help="Only records sent before this instant, such as 2026-11-21T17:30:00, because later ones "
    "may still be in transit.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(("read_committed", "read_uncommitted")),
    default="read_committed",
    show_default=True,
)
@click.option(
    "--compacted", is_flag=True, help="Accept rows of records that the source no longer has."
)
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="How many examples of each kind to name.",
)
@storage
@as_json
@bootstrap_server
def verify(**options: Any) -> int:
    """Check that topics or Delta tables contain every record of a topic exactly once.

    A row identifies its record by three headers or columns. Without them, keys or whole values are
    compared by how often each occurs in the source and in the sinks. The exit code is 0 if each
    record has exactly one row, and otherwise 1.

    The source is read up to its present end (or --until), and then the sinks. A pipeline may keep
    running, but records that it has not processed yet count as lost.

    \b
    Examples:
      barnabas verify --source clicks --sink ./tables/clicks
      barnabas verify --source clicks --sink ./tables/clicks --sink dead-letters
      barnabas verify --source clicks --sink once --by value
      barnabas verify --source clicks --sink ./tables/clicks --columns partition,offset --json
    """
    try:
        from barnabas.cli.verify.compare import compare
    except ImportError:
        raise ConfigError(
            f"verify needs numpy and pyarrow: {install_line('spark', ['numpy', 'pyarrow'])}"
        ) from None
    wanted = _make_wanted(options)
    with Progress(None, wanted=not options["as_json"]) as progress:
        verdict = run_client(compare(wanted, progress), None)
    if options["as_json"]:
        click.echo(json.dumps(_as_values(verdict), indent=2))
    else:
        for line in _lines(verdict, wanted):
            click.echo(line)
    return EXIT_OK if verdict.is_exact else EXIT_FAILURE


def _make_wanted(options: dict[str, Any]) -> Wanted:
    """Return the comparison that the options describe. Raises UsageError."""
    from barnabas.cli.verify.compare import Wanted

    by, until = options["by"], options["until"]
    # Without offsets, rows for later records could not be left out.
    if until is not None and by != "offset":
        raise click.UsageError("--until needs --by offset: keys and values have no time")
    try:
        until_ms = None if until is None else instant_ms(until)
    except BadInstant as error:
        raise click.UsageError(f"--until {error}") from error
    sources = tuple(dict.fromkeys(options["sources"]))
    return Wanted(
        options["servers"],
        sources,
        tuple(dict.fromkeys(options["sinks"])),
        by,
        _names("--headers", options["headers"], len(sources)),
        _names("--columns", options["columns"], len(sources)),
        options["value_column"] or by,
        until_ms,
        options["isolation_level"],
        storage_options(options["storage_pairs"]),
        options["examples"],
        options["compacted"],
    )


def _names(option: str, text: str, sources: int) -> Names:
    from barnabas.cli.verify.read import Names

    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(names) not in (2, 3):
        raise click.UsageError(f"{option} {text}: not TOPIC,PARTITION,OFFSET")
    if len(names) == 2 and sources > 1:
        raise click.UsageError(f"{option} {text}: with several sources the topic has to be named")
    return Names(names[0] if len(names) == 3 else None, *names[-2:])


def _lines(verdict: Verdict, wanted: Wanted) -> Iterator[str]:
    found = verdict.findings
    records = f"{counted(found.records, 'record')} of {', '.join(wanted.sources)}"
    yield f"{records}, {counted(found.rows, 'row')}"
    counts = {
        "lost": found.lost,
        "doubled": found.doubled,
        "unfounded": found.unfounded,
        "unmarked": verdict.unmarked,
    }
    kinds = _KINDS if wanted.by == "offset" else _KINDS_OF_VALUES
    for kind, (noun, text) in kinds.items():
        if counts[kind]:
            places = verdict.examples.get(kind, [])
            more = ", ..." if places and counts[kind] > len(places) else ""
            shown = f" ({', '.join(places)}{more})" if places else ""
            number = counted(counts[kind], noun.format(by=wanted.by))
            words = text.format(by=wanted.by, s="s" if counts[kind] == 1 else "")
            yield f"{kind}: {number} {words}{shown}"
    for count, text in (
        (found.earlier, "of records that the source no longer has"),
        (found.later, "of records beyond the end that was read"),
        (verdict.of_others, "of other topics"),
    ):
        if count:
            yield f"ignored: {counted(count, 'row')} {text}"
    yield "exact: every record has one row" if verdict.is_exact else "NOT exact"


def _as_values(verdict: Verdict) -> dict[str, Any]:
    found = verdict.findings
    return {
        "exact": verdict.is_exact,
        "records": found.records,
        "rows": found.rows,
        "lost": found.lost,
        "doubled": found.doubled,
        "extraRows": found.extra_rows,
        "unfounded": found.unfounded,
        "unmarked": verdict.unmarked,
        "earlier": found.earlier,
        "later": found.later,
        "ofOtherTopics": verdict.of_others,
        "examples": dict(verdict.examples),
    }
