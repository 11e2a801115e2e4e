"""The page: it stands alone, gives no address away, and bears nothing and hostile input."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from barnabas_pipeline.__main__ import main
from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.behaviour.figures import Figures, read_figures
from barnabas_pipeline.behaviour.headlines import headlines, summary
from barnabas_pipeline.behaviour.rankings import DIRECT, Missing, Rankings, Row
from barnabas_pipeline.behaviour.report import render, write_report
from barnabas_pipeline.behaviour.sheets import sheets
from barnabas_pipeline.behaviour.timeline import Moment, Timeline
from barnabas_pipeline.behaviour.visits import SessionFigures
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.parsed_page import Page
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, tables_in, taken
from tests.kit.pipeline.web_records import line, record, table

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
DATA = "report-data"
HOSTILE = "<script>alert(1)</script>"
ADDRESSES = ("198.51.100.23", "2001:db8:85a3::8a2e:370:7334", "203.0.113.77")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko/20100101 Firefox/24.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def unsaid(page: str, *expected: str) -> list[str]:
    """Which of these the page's text does not have."""
    text = Page(page).text
    return [each for each in expected if each not in text]


def page_of(figures: Figures, options: PageOptions) -> str:
    return render(figures, options, sheets(figures), DATA)


def figures(intervals: int) -> Figures:
    begin, hour = datetime.fromisoformat("2026-03-02"), timedelta(hours=1)
    moments = [Moment(begin + i * hour, i % 7, i % 3, i % 5, i % 2) for i in range(intervals)]
    classes = [(begin + i * hour, {"2xx": i, "5xx": i % 2}) for i in range(intervals)]
    heat = [[float(hour * day) for hour in range(24)] for day in range(7)]
    rows = [Row(HOSTILE, 3, 4_100), Row("/", 1, 0)]
    return Figures(
        accounts=Accounts(10, 7, 2, 1),
        files=[(HOSTILE, Accounts(10, 7, 2, 1))],
        humans=SessionFigures(3, 4, 1, 2, 4, 9, 61.0),
        robots=SessionFigures(),
        comparison=None,
        timeline=Timeline(hour, moments, hour, classes, heat, 123_456, [60]),
        depths=[(0, 1), (1, 2), (7, 1)],
        lengths=[("0 s", 3), ("1–9 s", 0), ("1+ hours", 1)],
        rankings=Rankings(rows, rows, [], rows, rows, [], *[rows] * 6),
        missing=[Missing(HOSTILE, 2, 1, [(HOSTILE, 3)])],
        statuses=[(200, 7), (500, 1)],
        dead_letters=[DeadLetters("not UTF-8", 2, [("access.log, line 7", HOSTILE)])],
    )


def log() -> Iterator[bytes]:
    """Of two days: addresses wherever a line may have them."""
    for day in (17, 18):
        for i, address in enumerate(ADDRESSES):
            given = {"client": address, "day": f"{day}/May/2015", "agent": FIREFOX}
            yield line(clock=f"10:0{i}:00", path=f"/hosts/{address}", referrer="-", **given)
            yield line(clock=f"10:1{i}:00", path="/b", referrer=f"http://{address}/x", **given)
            yield line(clock=f"12:0{i}:00", referrer=f"http://[{ADDRESSES[1]}]/", **given)
            missing = f"/gone/{address}"
            referrer = f"http://{address}/links?secret=1"
            yield line(clock=f"12:1{i}:00", path=missing, status=404, referrer=referrer, **given)
    yield line(clock="12:30:00", day="18/May/2015", agent=GOOGLEBOT)
    yield b"upstream 203.0.113.77 does not answer 2001:db8:85a3::8a2e:370:7334"
    yield b"upstream \0" + b"y" * 400
    yield b'203.0.113.77 - - [18/May/2015:10:00:00 +0000] "GET /'


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the tables of `log`, in two batches."""
    directory = tmp_path_factory.mktemp("out")
    file = f"{ADDRESSES[0]}.log"
    rows = [record(each, i, position=100 * i, file=file) for i, each in enumerate(log())]
    for batch, portion in enumerate((rows[:9], rows[9:])):
        records = table(portion)
        tasks = lambda one_pass, records=records: in_tasks(records, one_pass)  # noqa: E731
        taken(tables_in(directory / "tables"), batch, "q", tasks, send_nothing)
    return directory


@pytest.fixture(scope="module")
def masked(out: Path) -> Figures:
    """The figures, and their page and files in `out`."""
    found = read_figures(Snapshot(out / "tables", BEHAVIOUR))
    write_report(out / "report.html", found, OPTIONS)
    return found


def test_the_page_needs_nothing_else_sp_5() -> None:
    """SP-5: no network and no script; and all figures are in it."""
    page = page_of(figures(100), OPTIONS)
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert not re.search(r"src\s*=|url\(|@import|<link", page)
    assert "<script" not in page and 'http-equiv="refresh"' not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count('<div class="picture">') == 4
    expected = (
        "10 lines read =",
        "not UTF-8",
        "access.log, line 7",
        "1 min 1 s",
        "123 kB",
        "4.1 kB",
    )
    assert unsaid(page, *expected, "UTC+01:00", "16 March 2026, 12:00:05 UTC") == []


@pytest.mark.thorough
def test_a_page_of_little_and_of_nothing(tmp_path: Path) -> None:
    for intervals in (1, 2):
        assert "nan" not in page_of(figures(intervals), OPTIONS)
    nothing = read_figures(Snapshot(tmp_path / "tables", BEHAVIOUR))
    assert nothing.accounts == Accounts()
    path = tmp_path / "report.html"
    write_report(path, nothing, OPTIONS)
    assert unsaid(path.read_text("utf-8"), "nothing yet") == []
    assert sorted(file.name for file in tmp_path.iterdir()) == [DATA, "report.html"]


def test_sp_2_rejected_lines_are_the_first_that_a_page_says() -> None:
    """SP-2: how many, why, and three of them, before all figures."""
    samples = [(f"access.log, line {number}", f"odd {number}") for number in (7, 8)]
    letters = [DeadLetters("not UTF-8", 2, samples), DeadLetters("bad time", 1, samples[:1])]
    few = figures(3)._replace(accounts=Accounts(20, 17, 3, 0), dead_letters=letters)
    page = page_of(few, OPTIONS)
    assert page.index('class="alarms"') < page.index('class="key"')
    assert unsaid(page, "3 lines were rejected", "3 of 20 lines", "2 not UTF-8", "1 bad time") == []
    assert page.index("line 7: not UTF-8") < page.index("line 7: bad time")
    assert page.index("line 7: bad time") < page.index("line 8: not UTF-8")
    assert 'role="alert"' not in page, "less than a fifth"
    assert HOSTILE not in page

    many = page_of(few._replace(accounts=Accounts(9, 6, 3, 0)), OPTIONS)
    assert 'role="alert"' in many
    assert unsaid(many, "33% of the lines were rejected", "3 of 9 lines") == []
    none = page_of(few._replace(accounts=Accounts(9, 9, 0, 0), dead_letters=[]), OPTIONS)
    assert 'class="alarms"' not in none


def test_sp_2_a_page_speaks_of_lines_alone() -> None:
    """What is a record in a topic is a line to the reader of an access log."""
    assert not re.search(r"\brecords?\b", Page(page_of(figures(3), OPTIONS)).text)


@pytest.mark.thorough
def test_sp_2_a_page_without_a_valid_line_says_so(tmp_path: Path) -> None:
    rows = [record(b"no line", i, position=100 * i) for i in range(3)]
    tasks = lambda one_pass: in_tasks(table(rows), one_pass)  # noqa: E731
    taken(tables_in(tmp_path / "tables"), 0, "q", tasks, send_nothing)
    page = page_of(read_figures(Snapshot(tmp_path / "tables", BEHAVIOUR)), OPTIONS)
    assert unsaid(page, "nothing valid", "100% of the lines were rejected") == []
    assert "nothing yet" not in page


@pytest.mark.thorough
def test_sp_2_host_method_response_time_and_format_are_on_the_page(tmp_path: Path) -> None:
    """SP-2: where lines have them; and the title names the host and the zone."""
    texts = [b"www.example.com:443 " + line(path=f"/{i % 2}") for i in range(10)]
    texts = [text + b" %d.0%d0" % (i % 2, i) for i, text in enumerate(texts)]
    texts += [b"shop.example.com " + line(path="/c"), line(), b"no line"]
    rows = [record(text, i, position=100 * i) for i, text in enumerate(texts)]
    tasks = lambda one_pass: in_tasks(table(rows), one_pass)  # noqa: E731
    taken(tables_in(tmp_path / "tables"), 0, "q", tasks, send_nothing)
    found = read_figures(Snapshot(tmp_path / "tables", BEHAVIOUR))
    page = page_of(found, OPTIONS)
    title = "Access log of www.example.com and 1 other host, Sunday, 17 May 2015 (UTC)"
    assert f"<title>{title}</title>" in page
    said = ("www.example.com 10", "shop.example.com 1", "GET HTTP/1.1 12", "of 10 hits")
    formats = ("Debian's vhost_combined 11", "Combined Log Format: Apache, nginx 1")
    assert unsaid(page, *said, *formats, "rejected: not an access log line") == []
    whole, (slowest, _) = found.times.all, found.times.paths
    assert whole is not None and whole.hits == 10
    assert (slowest.name, slowest.hits) == ("/1", 5)
    assert 900_000 < slowest.p95_us <= 1_090_000 * 1.2


@pytest.mark.thorough
def test_a_card_without_figures_is_hidden(out: Path) -> None:
    page = page_of(read_figures(Snapshot(out / "tables", BEHAVIOUR)), OPTIONS)
    assert "<h2>Hosts</h2>" not in page and "<h2>Response times</h2>" not in page
    assert "<h2>Formats found</h2>" in page and "<h2>Requests</h2>" in page


@pytest.mark.thorough
def test_sp_5_each_headline_has_a_definition_and_its_table(out: Path, masked: Figures) -> None:
    page = page_of(masked, OPTIONS)
    for each in headlines(masked):
        assert each.definition.replace("'", "&#39;") in page
        assert (out / DATA / each.file).is_file()


def test_numbers_that_do_not_add_up_are_shown_as_such() -> None:
    broken = figures(3)._replace(accounts=Accounts(10, 7, 1, 1))
    assert unsaid(page_of(broken, OPTIONS), "do not add up", "does not add up") == []


def test_no_label_is_too_small_to_read() -> None:
    page = page_of(figures(100), OPTIONS)
    sizes = re.findall(r"font(?:-size)?:[^;{}]*?(\d+)px", page)
    assert len(sizes) > 10 and min(map(int, sizes)) >= 11
    for stretched in re.findall(r"<svg[^>]*viewBox.*?</svg>", page):
        assert "<text" not in stretched


def test_a_page_of_a_service_reloads_itself() -> None:
    page = page_of(figures(3), OPTIONS._replace(refresh_s=10))
    assert '<meta http-equiv="refresh" content="10">' in page
    assert unsaid(page, "live", "reloads every 10 seconds") == []


def test_neither_page_nor_files_name_a_whole_address_or_a_directory(
    out: Path, masked: Figures
) -> None:
    written = [out / "report.html", *(out / DATA).iterdir()]
    for file in written:
        text = file.read_text("utf-8")
        assert not [address for address in ADDRESSES if address in text], file
        assert "8a2e:370" not in text and "/logs/" not in text and str(out) not in text, file
        assert "secret" not in text, "a referrer's query"
    page = (out / "report.html").read_text("utf-8")
    networks = ("/hosts/198.51.100.x", "2001:db8:85a3::x", "203.0.113.x - -", "198.51.100.x.log")
    assert unsaid(page, *networks) == []


def test_who_asks_for_addresses_gets_them_whole(out: Path) -> None:
    figures = read_figures(Snapshot(out / "tables", BEHAVIOUR), show_addresses=True)
    page = page_of(figures, OPTIONS._replace(show_addresses=True))
    assert all(address in page for address in ADDRESSES)
    assert "are hidden" not in page


@pytest.mark.parametrize("shows", [False, True])
def test_the_command_draws_the_page_again(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], shows: bool
) -> None:
    shutil.copytree(out / "tables", tmp_path / "tables")
    asked = ["--show-addresses"] if shows else []
    assert main(["report", "--out", str(tmp_path), *asked]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    page = (tmp_path / "report.html").read_text("utf-8")
    assert ("are hidden" in page, ADDRESSES[2] in page) == (not shows, shows)
    assert (ADDRESSES[2] in (tmp_path / DATA / "report.json").read_text("utf-8")) == shows


def test_all_links_of_the_page_exist(out: Path, masked: Figures) -> None:
    page = Page((out / "report.html").read_text("utf-8"))
    assert len(page.files) > 30
    assert all((out / link).is_file() for link in page.files)
    assert {Path(link).name for link in page.files} == {
        file.name for file in (out / DATA).iterdir()
    }


def test_files_have_the_figures_of_the_page(out: Path, masked: Figures) -> None:
    """Each number of the page is in them, and CSV and JSON say the same."""
    whole = json.loads((out / DATA / "report.json").read_text("utf-8"))
    for sheet in sheets(masked):
        with (out / DATA / sheet.file).open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        texts = [["" if cell is None else str(cell) for cell in row] for row in sheet.rows]
        assert rows == [list(sheet.columns), *texts]
        assert whole[sheet.name] == [
            dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows
        ]
    page = Page((out / "report.html").read_text("utf-8")).text
    for row in (*whole["pages"], *whole["entry_pages"], *whole["exit_pages"], *whole["errors"]):
        assert row["path"] in page
    for each in headlines(masked):
        assert each.text in page and each.last_text in page and each.change in page


def test_what_the_figures_of_a_log_are(masked: Figures) -> None:
    rankings = masked.rankings
    assert masked.humans[:3] == (3, 12, 3) and masked.robots.visitors == 1
    assert [tuple(row) for row in rankings.browsers] == [("Firefox", 3, None)]
    assert (rankings.systems[0].name, rankings.devices[0].name) == ("Linux", "Computer")
    assert [tuple(row) for row in rankings.robots] == [("Googlebot", 1, 100)]
    assert rankings.pages[0] == Row("/", 6, 700) and rankings.pages[1] == Row("/b", 6, 600)
    assert {row.name: row.total for row in rankings.sources} == {
        DIRECT: 6,
        "[2001:db8:85a3::x]": 6,
    }
    assert masked.missing[0] == Missing(
        "/gone/198.51.100.x", 2, 0, [("http://198.51.100.x/links", 2)]
    )
    assert masked.comparison is not None, "half of 26 hours with the other half"
    assert masked.comparison.before.hits == masked.comparison.last.hits - 1 == 12
    (cut,) = (text for of in masked.dead_letters for _, text in of.samples if "yy" in text)
    assert cut == f"upstream \\x00{'y' * 170}…", "its first 180 characters"
    assert [label for label, _ in summary(masked)] == ["people", "robots", "rejected"]
