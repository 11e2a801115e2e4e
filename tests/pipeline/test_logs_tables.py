"""The tables of system logs: each line once, and templates that stay what they are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import read_figures
from barnabas_pipeline.logs.generator import generate
from barnabas_pipeline.one_pass import OnePass, outcome, with_rows_written
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.effort import rounds
from tests.kit.pipeline.grouping import accuracy
from tests.kit.pipeline.log_records import KNOWN, QUERY, contents, in_tasks, records, send, write

LINES = 4_000
BATCHES = 4
PUBLISHED = {"HDFS": 0.998, "OpenSSH": 0.788, "OpenStack": 0.733, "Zookeeper": 0.967}
"""Drain's grouping accuracy: Zhu et al., "Tools and Benchmarks for Automated Log Parsing", 2019."""


def batches() -> list[pa.Table]:
    """A file in each of five partitions, cut into batches of other sizes."""
    found = []
    for number in range(BATCHES):
        parts = []
        for partition, (name, lines) in enumerate(sorted(generate(LINES, seed=5).items())):
            begin, end = (len(lines) * n**2 // BATCHES**2 for n in (number, number + 1))
            parts.append(records(name, lines[begin:end], partition, begin))
        found.append(pa.concat_tables(parts))
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All batches, with two tasks each."""
    directory = tmp_path_factory.mktemp("whole") / "tables"
    for number, batch in enumerate(batches()):
        write(Tables(directory, LOGS), number, batch, send)
    return directory


def test_sp_2_every_line_is_an_entry_or_a_dead_letter(whole: Path) -> None:
    snapshot = Snapshot(whole, LOGS)
    entries, letters = snapshot.frame("entries"), snapshot.frame("dead_letters")
    assert entries.height + letters.height == LINES
    assert letters["reason"].to_list() == ["the line has an impossible time (hdfs)"]
    assert entries["message"].str.ends_with(r" \xff\xfe").sum() == 4, "not UTF-8"
    for name in ("minutes", "components", "templates", "template_minutes"):
        assert snapshot.frame(name)["lines"].sum() == entries.height, name
    assert entries["template"].null_count() == 0
    by_template = dict(entries.group_by("template").len().iter_rows())
    assert by_template == dict(snapshot.frame("templates").select("template", "lines").iter_rows())
    assert set(entries["host"]) == {"gate"}


def test_sp_2_templates_do_not_depend_on_tasks(tmp_path: Path, whole: Path) -> None:
    """SP-2: the same ids and texts with one task, with five, and in the order of two."""
    expected = contents(whole)
    for tasks in (1, 3, 5):
        directory = tmp_path / str(tasks)
        for number, batch in enumerate(batches()):
            write(Tables(directory, LOGS), number, batch, send, tasks=tasks)
        assert contents(directory) == expected


@pytest.mark.repeated
def test_sp_3_a_batch_that_is_cut_off_between_any_two_commits(tmp_path: Path, whole: Path) -> None:
    """SP-3: nothing of it is seen, and its replay, with other tasks, ends as if there was none."""
    expected, last = contents(whole), BATCHES - 1
    begun = tmp_path / "begun"
    for number, batch in enumerate(batches()[:last]):
        write(Tables(begun, LOGS), number, batch, send)
    before, names = contents(begun), list(LOGS.all)
    for committed in range(0, len(names) + 1, rounds(2, in_soak=1)):
        directory = tmp_path / f"cut-{committed}"
        shutil.copytree(begun, directory)
        tables = Tables(directory, LOGS)
        work, paths = KNOWN.work(Snapshot(directory, LOGS)), tables.growing_paths()
        positions = tables.positions(tables.control())
        one_pass = OnePass(work, LOGS.growing, LOGS.merged, paths, positions)
        batch = batches()[last]
        found = with_rows_written(
            work.finish(outcome(LOGS, in_tasks(batch, one_pass))), LOGS.growing, paths
        )
        for name in names[:committed]:
            tables.commit_to(name, last, QUERY, found)
        assert contents(directory) == before, f"cut off behind {committed} commits"
        write(tables, last, batch, send, tasks=3)
        assert contents(directory) == expected, f"taken again behind {committed} commits"


def test_sp_3_what_is_merged_reads_the_same(tmp_path: Path, whole: Path) -> None:
    directory = tmp_path / "tables"
    shutil.copytree(whole, directory)
    Tables(directory, LOGS).tidy()
    assert contents(directory) == contents(whole)


def test_sp_2_what_the_page_shows_of_a_log_with_a_story(tmp_path: Path) -> None:
    """SP-2: the outage, the component that fell silent, the new template, and who got in."""
    directory = tmp_path / "tables"
    parts = [
        records(name, lines, partition)
        for partition, (name, lines) in enumerate(sorted(generate(40_000, seed=11).items()))
    ]
    write(Tables(directory, LOGS), 0, pa.concat_tables(parts), send)
    figures = read_figures(Snapshot(directory, LOGS), show_addresses=True)
    assert figures.lines == figures.accounts.valid
    texts = {figures.texts[burst.template] for each in figures.incidents for burst in each.bursts}
    assert "Payment of order <num> failed" in texts
    assert [each.component for each in figures.silences] == ["search.indexer"]
    assert "Remounting <path> read-only after I/O errors" in {
        each.text for each in figures.new_templates
    }
    inside, outside = figures.intruders
    assert (inside.address, inside.entered_as) == ("203.0.113.18", ("git",))
    assert (outside.address, outside.entered_as) == ("203.0.113.17", ())
    worst = figures.components[0]
    assert (worst.component, worst.errors > 0) == ("shop.orders.Checkout", True)
    assert figures.raw_lines > 0 and figures.raw_samples


def test_figures_of_nothing(tmp_path: Path) -> None:
    figures = read_figures(Snapshot(tmp_path, LOGS))
    assert not figures.lines and not figures.raw_lines and not figures.hosts
    assert not (figures.templates or figures.incidents or figures.silences or figures.intruders)


# ---- real logs ----


@pytest.fixture
def sample(shared: Path) -> Callable[[str], tuple[list[bytes], list[str]]]:
    def read(name: str) -> tuple[list[bytes], list[str]]:
        place = shared / "data" / "system-logs"
        lines = (place / f"{name}_2k.log").read_bytes().splitlines()
        return lines, (place / f"{name}_2k.events").read_text().split()

    return read


@pytest.mark.foreign
def test_sp_2_templates_are_those_that_people_found(
    sample: Callable[[str], tuple[list[bytes], list[str]]], tmp_path: Path
) -> None:
    """SP-2: grouping accuracy on lines that were labelled by hand, all four systems at once and in
    two batches."""
    lines = {name: sample(name)[0] for name in PUBLISHED}
    for number, (begin, end) in enumerate(((0, 700), (700, 2_000))):
        parts = [
            records(name, each[begin:end], partition, begin)
            for partition, (name, each) in enumerate(lines.items())
        ]
        write(Tables(tmp_path, LOGS), number, pa.concat_tables(parts), send)
    entries = Snapshot(tmp_path, LOGS).frame("entries").sort("partition", "offset")
    assert entries.height == 8_000
    assert set(entries["format"]) == {"hdfs", "syslog", "openstack", "zookeeper"}
    found = {}
    for partition, (name, published) in enumerate(PUBLISHED.items()):
        groups = entries.filter(pl.col("partition") == partition)["template"].to_list()
        found[name] = accuracy(sample(name)[1], groups)
        assert found[name] >= published - 0.0005, name  # which is rounded
    print(f"grouping accuracy: {', '.join(f'{name} {each:.4f}' for name, each in found.items())}")
