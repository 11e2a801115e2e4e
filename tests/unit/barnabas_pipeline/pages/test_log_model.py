"""The model of system logs: its figures, its rows, and its search, beside plain Python."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.console.json_response import json_bytes
from barnabas.console.problem import WebProblem
from barnabas_pipeline.logs.attention import Lines, found_concerns
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import read_figures
from barnabas_pipeline.logs.generator import generate
from barnabas_pipeline.logs.headlines import ERRORS, headlines
from barnabas_pipeline.logs.schemas import ENTRIES
from barnabas_pipeline.one_pass import write as write_files
from barnabas_pipeline.pages.filters import Filters, parse
from barnabas_pipeline.pages.log_columns import DIMENSIONS, read_columns
from barnabas_pipeline.pages.log_model import LogModel, read_log_model
from barnabas_pipeline.pages.log_rows import MESSAGE_LENGTH, LogRows
from barnabas_pipeline.pages.log_words import MOST_WORDS, parse_words
from barnabas_pipeline.pages.shapes import Rows
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.effort import examples
from tests.kit.pipeline.entry_tables import Entry, EntryView, commit_entries, entry_table
from tests.kit.pipeline.log_records import records, send, write

BEGIN = datetime(2026, 3, 12, 6, tzinfo=UTC)
TEXTS = {"a1": "user <*> failed", "b2": "Größe of <num> files", "c3": "ed25519 key <*>"}
MESSAGES = {
    "a1": "user {} failed",
    "b2": "Größe  of {} files",
    "c3": "ed_25519 key {}",
    None: "{} by itself",
}
PARTS = ("Ann", "ÄGYPTEN", "failed", "17", '<b>"x"</b>', "größe")
WORDS = (
    "user",
    '"user failed"',
    '"größe of"',
    "ed25519",
    "FAILED",
    "ägyp",
    '"r ann f"',
    "<b>",
    "of",
    "e",
    "17",
    "gate",
    "B",
    "25519",
    "at ",
)
Names = dict[str, Sequence[str | None]]
NAMES: Names = {
    "level": (None, "INFO", "WARN", "ERROR", "FATAL"),
    "component": (None, "sshd", "a.B", "Ähm"),
    "host": (None, "gate", "198.51.100.7", "198.51.100.8"),
    "format": ("raw", "syslog", "log4j"),
    "service": (None, "shop"),
    "file": (None, "/logs/x.log", "/other/x.log"),
}


@st.composite
def an_entry(draw: st.DrawFn) -> dict[str, Any]:
    template = draw(st.sampled_from([*MESSAGES]))
    names = {name: draw(st.sampled_from(values)) for name, values in NAMES.items()}
    return {
        **names,
        "time": BEGIN + timedelta(seconds=draw(st.integers(0, 8)) * 437.5),
        "template": template,
        "message": MESSAGES[template].format(draw(st.sampled_from(PARTS))),
        "more": draw(st.sampled_from([None, None, "at shop.Basket\nat user.Ann"])),
        "topic": draw(st.sampled_from(["logs", "others"])),
        "partition": draw(st.integers(0, 2)),
    }


@st.composite
def some_files(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    files = draw(st.lists(st.lists(an_entry(), max_size=12), min_size=1, max_size=4))
    offsets = Counter[tuple[str, int]]()
    for each in (each for file in files for each in file):
        place = each["topic"], each["partition"]
        each["offset"], offsets[place] = offsets[place], offsets[place] + 1
    return files


def some_filters() -> st.SearchStrategy[str]:
    chosen = [
        st.sampled_from([f"{name}={'~' if value is None else value}" for value in values])
        for name, values in {**NAMES, "template": [*MESSAGES], "file": [None, "x.log"]}.items()
    ]
    since = st.sampled_from(["since=2026-03-12T06:10", "until=2026-03-12T06:30", ""])
    return st.lists(st.one_of(since, *chosen), max_size=3).map("&".join)


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    """The latest first."""
    keys = ("time", "topic", "partition", "offset")
    return sorted(entries, key=lambda each: tuple(each[key] for key in keys), reverse=True)


def fits(entry: Entry, filters: Filters) -> bool:
    time_us = (entry["time"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    since_us, until_us = filters.period
    is_within = (since_us is None or time_us >= since_us) and (
        until_us is None or time_us < until_us
    )
    return is_within and all(
        label(entry, name) in values for name, values in filters.values.items()
    )


def label(entry: Entry, name: str) -> str:
    value = entry.get(name)
    if value is None:
        return "~"
    return Path(value).name if name == "file" else str(value)


def has_words(entry: Entry, words: Sequence[str]) -> bool:
    texts = [entry.get(name) or "" for name in ("message", "more", "component", "host")]
    return all(any(word in text.lower() for text in texts) for word in words)


def cells_of(entry: Entry) -> list[object]:
    names = ("level", "host", "component", "message", "more", "template")
    return [round(entry["time"].timestamp() * 1_000), *(entry.get(name) for name in names)]


def filters_of(query: str) -> Filters:
    return parse(parse_qsl(query, keep_blank_values=True), DIMENSIONS)


def all_pages(page: Callable[[str], Rows]) -> tuple[list[object], int]:
    """Return the rows of all pages, and how many match."""
    rows: list[object] = []
    before = ""
    while True:
        found = page(before)
        rows += found["rows"]
        assert len(rows) <= found["matching"]
        before = found["next"]
        if not before:
            return rows, found["matching"]


@settings(max_examples=examples(60))
@given(
    some_files(), some_filters(), st.lists(st.sampled_from(WORDS), max_size=3), st.integers(1, 9)
)
def test_rows_are_those_of_plain_python_on_every_page(
    files: list[list[dict[str, Any]]], query: str, words: list[str], limit: int
) -> None:
    filters, text = filters_of(query), " ".join(words)
    expected = [
        cells_of(each)
        for each in ordered([each for file in files for each in file])
        if fits(each, filters) and has_words(each, parse_words(text))
    ]
    with tempfile.TemporaryDirectory() as directory:
        for file in files:
            write_files(directory, entry_table(file), ENTRIES)
        columns = read_columns(ds.dataset(directory, ENTRIES, format="parquet"), str)
        options = {"words": text, "limit": str(limit)}
        at_once = LogRows(columns, TEXTS, str)
        rows, matching = all_pages(lambda at: at_once.page(filters, {**options, "before": at}))
        assert (rows, matching) == (expected, len(expected))
        assert [*at_once.all(filters, options)][1:] == expected
        # A search that stops after each row group lists the first rows only.
        slow = LogRows(columns, TEXTS, str, search_s=0)
        while True:
            page = slow.page(filters, {**options, "limit": "1000"})
            from_ms = page["searched_from"]
            newer = [each for each in expected if from_ms is None or int(str(each[0])) > from_ms]
            assert page["rows"] == newer
            if from_ms is None:
                break


@settings(max_examples=examples(30))
@given(some_files(), some_filters())
def test_cards_and_headlines_are_those_of_plain_python(
    files: list[list[dict[str, Any]]], query: str
) -> None:
    filters = filters_of(query)
    entries = [each for file in files for each in file if fits(each, filters)]
    with tempfile.TemporaryDirectory() as directory:
        view = EntryView(Path(directory), [entry_table(file) for file in files], TEXTS)
        model = read_log_model(view, 0, show_addresses=True)
    answer = model.answer(filters)
    totals = {each["name"]: each["value"] for each in answer["headlines"]}
    assert answer["matching"] == totals["entries"] == len(entries)
    assert totals["errors"] == sum(each["level"] in ERRORS for each in entries)
    assert totals["raw_entries"] == sum(each["format"] == "raw" for each in entries)
    assert totals["templates"] == len({each["template"] for each in entries} - {None})
    for name, dimension in (
        ("levels", "level"),
        ("hosts", "host"),
        ("formats", "format"),
        ("files", "file"),
        ("components", "component"),
        ("templates", "template"),
    ):
        found = {row["key"]: row["cells"][1] for row in model.card(name, filters, {})["rows"]}
        expected = Counter(label(each, dimension) for each in entries)
        # These have no row for entries without a value, and a card of nothing else is left out.
        if dimension in ("component", "template", "format") or [*expected] == ["~"] != [*found]:
            expected.pop("~", None)
        assert found == expected, name
    if timeline := answer["timeline"]:
        end_ms = timeline["begins_at"] + timeline["step_ms"] * len(timeline["series"][0]["values"])
        shown = [each for each in entries if timeline["begins_at"] <= cells_of(each)[0] < end_ms]  # type: ignore[operator]
        sums = [sum(each["values"]) for each in timeline["series"]]
        assert sums[0] == sum(each["level"] in ERRORS for each in shown)
        assert sum(sums) == len(shown)
        assert 24 <= len(timeline["series"][0]["values"]) <= 120
        assert {each["time"] for each in entries if each["format"] != "raw"} <= {
            each["time"] for each in shown
        }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the generated logs, in two batches."""
    directory = tmp_path_factory.mktemp("of-logs") / "tables"
    files = sorted(generate(6_000, seed=11).items())
    written = Tables(directory, LOGS)
    for number, part in enumerate((files[::2], files[1::2])):
        batch = [records(name, each, at) for at, (name, each) in enumerate(part)]
        write(written, number, pa.concat_tables(batch), send)
    return directory


@pytest.fixture(scope="module")
def model(tables: Path) -> LogModel:
    return read_log_model(Snapshot(tables, LOGS), 1, show_addresses=True)


def rows_of(model: LogModel, query: str) -> Rows:
    pairs = parse_qsl(query, keep_blank_values=True)
    return model.rows(parse(pairs, DIMENSIONS), dict(pairs))


def test_without_filters_the_headlines_are_those_of_the_static_page(
    tables: Path, model: LogModel
) -> None:
    expected = headlines(read_figures(Snapshot(tables, LOGS), show_addresses=True))
    assert min(each.total for each in expected) > 0
    # A filter that all entries match computes them from the entries.
    for filters in (Filters(), filters_of("since=1970-01-01"), filters_of("host=gate&host=vm")):
        found = model.answer(filters)["headlines"]
        assert [(each["name"], each["value"]) for each in found] == [
            (each.name, each.total) for each in expected
        ]


@pytest.mark.parametrize("kept", ["", "host=gate", "since=2026-03-12T07:30"])
def test_the_link_of_a_concern_shows_exactly_its_entries(
    tables: Path, model: LogModel, kept: str
) -> None:
    filters = filters_of(kept)
    answer = model.answer(filters)
    selected = model.select(filters)
    entries = [
        each for each in Snapshot(tables, LOGS).frame("entries").to_dicts() if fits(each, filters)
    ]
    found = found_concerns(selected.figures)
    assert found and len(found) == len(answer["concerns"])
    for each, concern in zip(found, answer["concerns"], strict=True):
        assert concern["title"] == each.concern.title
        assert bool(concern["link"]) == (each.lines is not None)
        if each.lines is not None:
            expected = [cells_of(row) for row in ordered(entries) if shows(row, each.lines)]
            page = rows_of(model, f"{concern['link']}&limit=1000")
            assert expected and page["rows"] == expected[:1000]
            assert page["matching"] == len(expected)


def shows(entry: Entry, lines: Lines) -> bool:
    return (
        (lines.since is None or entry["time"] >= lines.since.replace(microsecond=0))
        and (lines.until is None or entry["time"] < lines.until)
        and (not lines.templates or entry["template"] in lines.templates)
        and (not lines.components or entry["component"] in lines.components)
        and (not lines.formats or entry["format"] in lines.formats)
        and (lines.word in entry["message"])
    )


def test_the_links_count_what_their_concerns_count(model: LogModel) -> None:
    figures = model.select(Filters()).figures
    concerns = model.answer(Filters())["concerns"]
    matching = {each["title"]: rows_of(model, each["link"])["matching"] for each in concerns}
    for burst in figures.incidents:
        # Several bursts of a template are one concern, whose link shows the largest.
        found = matching.get(f"Burst of {burst.lines:,} entries")
        # It also shows the usual entries of the templates of simultaneous bursts.
        if found is not None and len(burst.bursts) > 1:
            assert found >= burst.lines
        else:
            assert found in (None, burst.lines)
    for silence in figures.silences:
        assert matching[f"{silence.component} fell silent"] == silence.lines
    [intruder] = [each for each in figures.intruders if each.entered_as]
    title = f"Break-in on gate: {intruder.address} logged in as {intruder.entered_as[0]}"
    assert concerns[0]["title"] == title and concerns[0]["is_urgent"]
    assert matching[title] == intruder.failures + 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("user", ["a1"]),
        ("user failed", ["a1"]),
        # A template has neither the blanks nor the variable words of its messages.
        ('"user failed"', []),
        ('"größe of"', []),
        ('"größe  of"', ["b2"]),
        ("<*>", []),
        # A mask has removed the underscore.
        ("ed25519", []),
        ("ED_25519", ["c3"]),
    ],
)
def test_a_template_decides_only_where_all_its_messages_agree(
    tmp_path: Path, words: str, expected: list[str]
) -> None:
    entries = [
        {"time": BEGIN, "template": name, "message": MESSAGES[name].format("Ann"), "offset": 0}
        for name in TEXTS
    ]
    write_files(str(tmp_path), entry_table(entries), ENTRIES)
    columns = read_columns(ds.dataset(tmp_path, ENTRIES, format="parquet"), str)
    page = LogRows(columns, TEXTS, str).page(Filters(), {"words": words})
    assert [row[6] for row in page["rows"]] == expected


def test_a_search_lists_the_latest_rows_first_and_continues(tmp_path: Path) -> None:
    order = [3, 0, 4, 1, 2]  # the files are not written in the order of their times
    for hour in order:
        entry = {"time": BEGIN + timedelta(hours=hour), "message": f"number {hour} of five"}
        write_files(str(tmp_path), entry_table([{**entry, "topic": "logs", "offset": 0}]), ENTRIES)
    columns = read_columns(ds.dataset(tmp_path, ENTRIES, format="parquet"), str)
    rows = LogRows(columns, {}, str, search_s=0)
    for searched in range(1, 6):
        page = rows.page(Filters(), {"words": "five"})
        found = [row[4] for row in page["rows"]]
        assert found == [f"number {hour} of five" for hour in (4, 3, 2, 1, 0)][:searched]
        left = BEGIN + timedelta(hours=4 - searched)
        assert page["searched_from"] == (None if searched == 5 else round(left.timestamp() * 1_000))
    # A search whose answer is known does not begin again.
    assert rows.page(Filters(), {"words": "FIVE", "limit": "1"})["matching"] == 5


def test_a_cursor_and_an_id_stay_valid_after_the_next_batch(tmp_path: Path) -> None:
    def entry(second: int, offset: int) -> Entry:
        at = BEGIN + timedelta(seconds=second)
        return {
            "time": at,
            "format": "raw",
            "message": f"number {offset}",
            "topic": "logs",
            "partition": 0,
            "offset": offset,
        }

    tables = Tables(tmp_path, LOGS)
    commit_entries(tables, 0, [entry_table([entry(1, n) for n in range(5)])], {})
    first = rows_of(_read(tmp_path), "limit=2")
    assert [row[4] for row in first["rows"]] == ["number 4", "number 3"]
    commit_entries(tables, 1, [entry_table([entry(1, 5), entry(0, 6), entry(2, 7)])], {})
    second = rows_of(_read(tmp_path), f"limit=3&before={first['next']}")
    assert [row[4] for row in second["rows"]] == ["number 2", "number 1", "number 0"]
    assert rows_of(_read(tmp_path), f"row={first['ids'][1]}")["rows"] == [first["rows"][1]]
    with pytest.raises(WebProblem, match="no such row"):
        rows_of(_read(tmp_path), f"row={first['ids'][1]}7")


def _read(directory: Path, *, show_addresses: bool = True) -> LogModel:
    return read_log_model(Snapshot(directory, LOGS), 0, show_addresses=show_addresses)


def test_new_templates_and_the_timeline_do_not_depend_on_what_is_selected(tmp_path: Path) -> None:
    entries = [
        {
            "time": BEGIN + timedelta(minutes=minute),
            "template": template,
            "level": level,
            "format": "log4j" if template else "raw",
            "message": "",
            "offset": 0,
        }
        for minute, template, level in (
            (0, "a1", "INFO"),
            (0, "b2", "INFO"),
            (50, "b2", "ERROR"),
            (100, "a1", "ERROR"),
            (100, "c3", "ERROR"),
            (300_000, None, None),  # received long after the others
        )
    ]
    model = read_log_model(
        EntryView(tmp_path, [entry_table(entries)], TEXTS), 0, show_addresses=True
    )
    for query in ("", "level=ERROR"):
        rows = model.card("new_templates", filters_of(query), {})["rows"]
        assert [row["key"] for row in rows] == ["c3"], query
    timeline = model.answer(Filters())["timeline"]
    assert timeline is not None and timeline["step_ms"] == 60_000
    assert model.site["ends_at"] == round(entries[4]["time"].timestamp() * 1_000)  # type: ignore[attr-defined]


def test_hostile_entries_are_shown_harmlessly_and_whole_on_request(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x00\x1b[31m\u202e" + 'x"' * MESSAGE_LENGTH
    entry = {
        "time": BEGIN,
        "format": hostile,
        "level": hostile,
        "host": hostile,
        "component": hostile,
        "template": "a1",
        "message": f"{hostile} from 198.51.100.23 and 2001:db8:1:2::7",
        "more": "at 198.51.100.24\n\tat b",
        "file": f"/logs/{hostile}",
        "service": hostile,
        "topic": "logs",
        "partition": 0,
        "offset": 0,
    }
    commit_entries(Tables(tmp_path, LOGS), 0, [entry_table([entry])], {"a1": hostile})
    model = _read(tmp_path, show_addresses=False)
    page = rows_of(model, "words=ALERT(1)")
    sent = json_bytes([page, model.answer(Filters()), model.site])
    assert sent.isascii() and not {*sent} & {*range(32)}
    texts = [*_texts(json.loads(sent))]
    assert not any(each in text for text in texts for each in "\x00\x1b\u202e" if len(text) < 3_000)
    [row] = page["rows"]
    assert str(row[4]).startswith("<script>alert(1)</script>\\x00\\x1b[31m\\u202e")
    assert str(row[4]).endswith("…") and len(str(row[4])) < MESSAGE_LENGTH + 20
    assert row[5] == "at 198.51.100.x\n\tat b"
    [whole] = rows_of(model, f"row={page['ids'][0]}")["rows"]
    assert str(whole[4]).endswith(" from 198.51.100.x and 2001:db8:1::x")


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def test_addresses_are_cut_to_their_networks_unless_they_are_to_be_shown(tables: Path) -> None:
    for show_addresses in (True, False):
        model = _read(tables, show_addresses=show_addresses)
        cards = [model.card(name, Filters(), {}) for name in ("addresses", "guessing", "users")]
        link = model.answer(Filters())["concerns"][0]["link"]
        rows = rows_of(model, link)
        text = json.dumps([model.answer(Filters()), model.site, cards, rows])
        assert ("203.0.113.18" in text) == show_addresses
        assert rows["matching"] > 10


def test_headlines_link_to_their_own_entries_or_to_none(model: LogModel) -> None:
    answer = model.answer(Filters())
    rows = {each["name"]: each["rows"] for each in answer["headlines"]}
    values = {each["name"]: each["value"] for each in answer["headlines"]}
    assert rows["bursts"] is None
    for name in ("errors", "raw_entries", "failed_logins"):
        assert rows_of(model, rows[name] or "")["matching"] == values[name]
    assert (rows["silent_components"] is not None) == (values["silent_components"] != 0)
    [intruder] = [each for each in answer["concerns"] if each["title"].startswith("Break-in")]
    assert values["break_ins"] == 1 and rows["break_ins"] == intruder["link"]
    assert 0 < rows_of(model, intruder["link"])["matching"] < values["failed_logins"]
    answer = model.answer(filters_of("level=ERROR"))
    assert {each["name"]: each["rows"] for each in answer["headlines"]}["failed_logins"] is None


def test_what_cannot_be_searched_is_refused(model: LogModel) -> None:
    assert parse_words(f'Ann  "b  C"{" x" * 30} d"e') == ("ann", "b  c", "x", "d", "e")
    many = "+".join(f"w{n}" for n in range(MOST_WORDS + 1))
    for query, said in (
        (f"words={many}", "at most 20 words"),
        (f"words={'x' * 2_001}", "at most 2000 characters"),
        ("limit=1001", "a number from 1 to 1,000"),
        ("limit=-1", "a number from 1 to 1,000"),
        ("before=1,logs,x,0,0", "neither a row nor a cursor"),
        (f"before={10**30},logs,0,0,0", "neither a row nor a cursor"),
        ("row=1", "neither a row nor a cursor"),
    ):
        with pytest.raises(WebProblem, match=said):
            rows_of(model, query)
    with pytest.raises(WebProblem, match="no such card"):
        model.card("nothing", Filters(), {})


def test_tables_without_entries(tmp_path: Path) -> None:
    commit_entries(Tables(tmp_path, LOGS), 0, [entry_table([])], {})
    model = _read(tmp_path)
    assert model.site["begins_at"] is None and model.site["title"] == "System logs"
    answer = model.answer(filters_of("host=gate"))
    assert (answer["cards"], answer["concerns"], answer["timeline"]) == ([], [], None)
    assert rows_of(model, "words=x")["rows"] == []
