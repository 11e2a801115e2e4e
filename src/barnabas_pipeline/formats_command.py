"""Implements `barnabas formats`, which lists the known log formats and tries them on a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json
from barnabas.cli.terminal import for_terminal
from barnabas.cli.terminal_table import outside_text, show_table
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.printable import printable
from barnabas.similar_names import did_you_mean
from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format, in_zone
from barnabas_formats.user_formats import kind_of_pattern, own_format, read_formats

_EXAMPLES: Final = 3
_EXAMPLE_LENGTH: Final = 200
_WIDTH: Final = 14


@command_group()
def formats() -> None:
    """List the known log formats, and try them on a file.

    \b
    Examples:
      barnabas formats list
      barnabas formats list nginx
      barnabas formats try /var/log/syslog
    """


@formats.command("list")
@click.argument("word", metavar="[NAME|WORD]", required=False)
@as_json
def list_(word: str | None, as_json: bool) -> int:
    """List all formats, or only those with a given word in their name or title.

    If the whole name of a format is given, its samples and their parsed values are shown.

    \b
    Examples:
      barnabas formats list
      barnabas formats list spring
      barnabas formats list postgresql --json
    """
    found = sorted(catalogue(), key=lambda each: (each.kind, each.name))
    if word is not None:
        some = [each for each in found if word.lower() in f"{each.name} {each.title}".lower()]
        if not some or any(each.name == word for each in some):
            _show(_named(found, word), as_json=as_json)
            return EXIT_OK
        found = some
    if as_json:
        click.echo(json.dumps([_summary(each) for each in found], indent=2))
        return EXIT_OK
    rows = [(each.name, each.kind, each.title, each.source) for each in found]
    console = Console(highlight=False)
    if not console.is_terminal:
        # Print one line per format, for `grep` and `cut`.
        click.echo("\n".join(map("\t".join, rows)))
        return EXIT_OK
    titles = ("name", "kind", "title", "source")
    show_table(console, titles, [list(map(outside_text, row)) for row in rows])
    return EXIT_OK


def _summary(of: Format) -> dict[str, object]:
    return {"name": of.name, "kind": of.kind, "title": of.title, "source": of.source}


def _named(found: Sequence[Format], name: str) -> Format:
    """Return the first format with this name. Raises `ConfigError` if there is none."""
    for each in found:
        if each.name == name:
            return each
    names = dict.fromkeys(each.name for each in found)
    there = did_you_mean(name, names) or f"the formats are {', '.join(names)}"
    raise ConfigError(f"there is no format {name}; {there}")


def _show(of: Format, *, as_json: bool) -> None:
    if as_json:
        samples = [{"line": each.line, "values": each.values} for each in of.samples]
        shown = {**_summary(of), "samples": samples}
        click.echo(for_terminal(json.dumps(shown, indent=2, ensure_ascii=False)))
        return
    click.echo(f"{of.name}: {of.title} ({of.kind} logs)\n{of.source}")
    for sample in of.samples:
        click.echo(f"\n{printable(sample.line)}")
        for key, value in sample.values.items():
            click.echo(f"  {key:<{_WIDTH}} {printable(str(value))}")


@formats.command("try")
@click.argument("path", metavar="FILE|-")
@click.option("--format", "only", metavar="NAME", help="Try only this format.")
@click.option(
    "--formats",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Formats of your own, which are tried before the built-in ones.",
)
@click.option(
    "--pattern",
    metavar="PATTERN",
    help="A format of your own, such as '{time:%d.%m.%Y %H:%M:%S} {level} {message}'.",
)
@click.option(
    "--zone", metavar="ZONE", help="The zone of times without an offset, such as Europe/Vienna."
)
@as_json
def try_(path: str, as_json: bool, **given: Any) -> int:
    """Parse each line of a log as the pipelines do, and print the result.

    With --json, the output is one object per record, with its format and its fields. The formats
    found are counted on standard error, with examples of records that match no format. The exit
    code is 1 if no format fits any line.

    \b
    Examples:
      barnabas formats try /var/log/syslog
      barnabas formats try access.log --json
      journalctl -o json | barnabas formats try -
      barnabas formats try app.log --pattern '{time:%d.%m.%Y %H:%M:%S} {level} {message}'
    """
    try:
        from barnabas_pipeline.trial import Trial
    except ImportError as error:
        raise ConfigError(f"{error}: {install_line('pipeline')}") from None
    own = _own(given["file"], given["pattern"])
    known = catalogue()
    if (zone := given["zone"]) is not None:
        own, known = in_zone(own, zone), in_zone(known, zone)
    only = given["only"]
    trial = Trial(_kind(path, own, known, only), own, known, only)
    counts: Counter[str | None] = Counter()
    examples: list[str] = []
    for each in trial.try_file(path):
        click.echo(_as_json(each.values) if as_json else _as_text(each.values))
        counts[each.format] += 1
        if each.format is None and len(examples) < _EXAMPLES:
            examples.append(_example(each.number, each.values))
    _report(path, counts, examples)
    return EXIT_OK if any(name is not None for name in counts) else EXIT_FAILURE


def _own(file: Path | None, pattern: str | None) -> tuple[Format, ...]:
    typed = () if pattern is None else (_typed(pattern),)
    return (*typed, *(() if file is None else read_formats(file)))


def _typed(pattern: str) -> Format:
    return own_format("pattern", pattern=pattern, kind=kind_of_pattern(pattern))


def _kind(path: str, own: Sequence[Format], known: Sequence[Format], only: str | None) -> str:
    """Return the kind of log, which is determined by the only format to try, by the user's own
    formats, or by most of the lines.
    """
    from barnabas_pipeline.report_command import kind_of

    if only is not None:
        return _named((*own, *known), only).kind
    return kind_of([path], own)


def _as_json(values: Mapping[str, object]) -> str:
    return for_terminal(json.dumps(values, ensure_ascii=False))


def _as_text(values: Mapping[str, object]) -> str:
    """Return the format, the fields and finally the message, in a line."""
    name = "malformed" if values["format"] is None else str(values["format"])
    last = [str(values[key]) for key in ("message", "more") if key in values]
    fields = [
        f"{key}={value}"
        for key, value in values.items()
        if key not in ("format", "message", "more")
    ]
    return printable(f"{name:<{_WIDTH}} {'  '.join((*fields, *last))}".rstrip())


def _example(number: int, values: Mapping[str, object]) -> str:
    text = str(values["message"])
    cut = f"{text[:_EXAMPLE_LENGTH]}…" if len(text) > _EXAMPLE_LENGTH else text
    reason = f" ({values['reason']})" if "reason" in values else ""
    return printable(f"line {number}{reason}: {cut or '(empty)'}")


def _report(path: str, counts: Counter[str | None], examples: Sequence[str]) -> None:
    total = counts.total()
    if not total:
        raise ConfigError(f"there are no lines in {path}")
    parts = [
        f"{name or 'no format'} {count:,}"
        for name, count in sorted(counts.items(), key=lambda pair: (pair[0] is None, -pair[1]))
    ]
    click.echo(f"{counted(total, 'record')}: {', '.join(parts)}", err=True)
    if examples:
        click.echo("records that match no format, such as", err=True)
    for each in examples:
        click.echo(f"  {each}", err=True)
