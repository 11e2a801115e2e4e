"""BT-5: `barnabas pages serve` in a real browser: the questions of a product owner, each answered
by clicks alone, and compared with what was counted from the visits themselves.

Every test fails if the browser reports an error, a breach of the page's policy, or a dialog: a name
that became markup would show as one of these.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

import barnabas
from barnabas.client import SyncProducer
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline import log_records
from tests.kit.pipeline.event_records import event, records, take
from tests.kit.pipeline.shop_visits import BEGIN, DAYS, Visit, events_of, shop_visits
from tests.kit.pipeline.table_batches import in_tasks, send_nothing, taken
from tests.kit.pipeline.web_records import line, record, table
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import WebConsole, pages_server
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Route

pytestmark = pytest.mark.slow

MOST_BYTES = 250_000
VISITS = shop_visits()
EVENTS = events_of(VISITS)
END = BEGIN + timedelta(days=DAYS)
HOSTILE = "<img/src=x/onerror=alert(1)>\"'&\u202eevil" + "w" * 1_500


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    out = tmp_path_factory.mktemp("shop")
    take(out / "tables", 0, records(EVENTS))
    with pages_server(out) as running:
        yield address_of(running)


def address_of(server: WebConsole) -> str:
    return f"http://localhost:{server.port}/"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def settle(page: Page) -> None:
    """Wait until all figures are those of the address."""
    page.locator("[aria-busy=false]").first.wait_for()
    page.locator("[aria-busy=true]").wait_for(state="detached")
    page.locator(".waiting").wait_for(state="detached")


def visit(page: Page, address: str, place: str = "") -> None:
    page.goto("about:blank")  # otherwise, only the part after "#" would change
    page.goto(address + place)
    settle(page)


def card(page: Page, title: str) -> Locator:
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("section.card").filter(has=heading)


def figure(page: Page, label: str) -> str:
    return figures(page)[label]


def figures(page: Page) -> dict[str, str]:
    """The headlines by their labels."""
    settle(page)
    keys = page.locator(".key")
    labels = [each.strip() for each in keys.locator("b + span").all_inner_texts()]
    values = keys.locator("b").all_inner_texts()
    return dict(zip(labels, values, strict=True))


def bars(page: Page, title: str) -> dict[str, str]:
    """The first numbers of a card, by their labels."""
    rows = card(page, title).locator("li")
    labels, values = rows.locator(".label").all_inner_texts(), rows.locator("b").all_inner_texts()
    return dict(zip(labels, values, strict=True))


def choose(page: Page, title: str, row: str) -> None:
    """Click on a row of a card."""
    card(page, title).get_by_role("button", name=row, exact=True).click()
    settle(page)


def shown(counts: Counter[str]) -> dict[str, str]:
    return {name: f"{count:,}" for name, count in counts.items()}


def matching(page: Page) -> int:
    """The number of matching rows, which screen readers announce."""
    settle(page)
    return int(page.locator(".matching b").inner_text().split()[0].replace(",", ""))


def events_of_visits(wanted: Callable[[Visit], bool]) -> int:
    return sum(len(each.steps) for each in VISITS if wanted(each))


def events_between(since: datetime, until: datetime) -> int:
    times = [datetime.fromtimestamp(each["time"] / 1_000, UTC) for each in EVENTS]
    return sum(since <= time < until for time in times)


def visits_of_days(first: int, last: int) -> list[Visit]:
    """The visits of some days, counted from 0; the last one is included."""
    return [each for each in VISITS if first <= (each.begin.date() - BEGIN).days <= last]


def fits(page: Page) -> bool:
    beyond: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return beyond <= 0


def test_my_site(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        assert page.locator("h1").inner_text() == "shop.example"
        found = figures(page)
        pages = Counter(path for each in VISITS for path in each.pages)
        assert found["Visitors"] == f"{len({each.visitor for each in VISITS}):,}"
        assert found["Sessions"] == f"{len(VISITS):,}"
        assert found["Page views"] == f"{pages.total():,}"
        assert matching(page) == len(EVENTS)
        assert bars(page, "Pages") == shown(pages)
        page.locator(".key", has_text="Page views").get_by_role("link").click()
        page.get_by_role("columnheader", name="Time").wait_for()
        assert matching(page) == pages.total()


def test_which_days(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        page.get_by_label("from", exact=True).fill("2026-03-10")
        settle(page)
        assert matching(page) == events_between(at("2026-03-10"), at("2026-03-30"))
        page.get_by_label("to", exact=True).fill("2026-03-10")
        settle(page)
        assert matching(page) == events_between(at("2026-03-10"), at("2026-03-11"))
        page.get_by_role("button", name="Remove Period").click()
        assert matching(page) == len(EVENTS)
        over = page.locator("[data-card=timeline] .u-over")
        box = over.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=5)
        page.mouse.up()
        page.wait_for_url("**since=**")
        chosen = parse_qs(page.url.partition("?")[2])
        until = at(chosen["until"][0])
        until += timedelta(days=len(chosen["until"][0]) == 10)
        since = at(chosen["since"][0])
        assert timedelta(days=8) <= until - since <= timedelta(days=9.5)
        assert 0 < matching(page) == events_between(since, until)
        page.go_back()
        assert matching(page) == len(EVENTS)


def test_which_campaign(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        counts = Counter(each.campaign for each in VISITS if each.campaign)
        assert bars(page, "Campaigns") == shown(counts)
        choose(page, "Campaigns", "spring")
        assert figure(page, "Sessions") == str(counts["spring"])
        assert matching(page) == events_of_visits(lambda each: each.campaign == "spring")
        choose(page, "Campaigns", "spring")
        assert "campaign" not in page.url
        assert matching(page) == len(EVENTS)


def test_which_device(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        counts = Counter(each.device for each in VISITS)
        assert bars(page, "Devices") == shown(counts)
        choose(page, "Devices", "phone")
        choose(page, "Campaigns", "opening")
        both = [each for each in VISITS if (each.device, each.campaign) == ("phone", "opening")]
        assert figure(page, "Sessions") == str(len(both))
        assert bars(page, "Pages") == shown(Counter(path for each in both for path in each.pages))
        page.get_by_role("button", name="Remove Campaign: opening").click()
        assert figure(page, "Sessions") == str(counts["phone"])
        page.get_by_role("button", name="Clear all").click()
        assert figure(page, "Sessions") == str(len(VISITS))


def test_where_do_they_leave_the_funnel(browser: Browser, address: str) -> None:
    wanted = ("/", "/chairs", "/basket", "purchase")
    with opened(browser) as page:
        visit(page, address)
        for step in wanted:
            page.get_by_role("button", name=f"Add step {step}", exact=True).click()
        page.get_by_label("within").select_option("2 hours")
        settle(page)

        def reached(visits: list[Visit]) -> list[str]:
            found = [tuple(filter(wanted.__contains__, each.steps)) for each in visits]
            firsts = (wanted[:count] for count in range(1, len(wanted) + 1))
            return [str(sum(each[: len(first)] == first for each in found)) for first in firsts]

        steps = page.locator(".steps li b")
        assert steps.all_inner_texts() == reached(VISITS)
        choose(page, "Devices", "phone")
        assert steps.all_inner_texts() == reached(
            [each for each in VISITS if each.device == "phone"]
        )
        page.get_by_role("button", name="Remove step 2: /chairs").click()
        settle(page)
        assert steps.count() == 3


def test_who_comes_back(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        of_visitor = Counter(each.visitor for each in VISITS)
        new = len(of_visitor)
        expected = {"new": str(new), "returning": str(len(VISITS) - new)}
        assert bars(page, "New and returning") == expected
        choose(page, "New and returning", "returning")
        assert figure(page, "Sessions") == expected["returning"]
        assert figure(page, "Visitors") == str(sum(times > 1 for times in of_visitor.values()))
        page.get_by_role("button", name="Clear all").click()
        settle(page)
        weeks = {
            visitor: sorted(
                {
                    (each.begin.date() - BEGIN).days // 7
                    for each in VISITS
                    if each.visitor == visitor
                }
            )
            for visitor in of_visitor
        }
        of_first = Counter(found[0] for found in weeks.values())
        came_back = Counter(
            (found[0], week - found[0]) for found in weeks.values() for week in found
        )
        table = card(page, "Retention").locator("tbody tr")
        for first in range(DAYS // 7):
            row = table.nth(first)
            assert row.locator("td").first.inner_text() == str(of_first[first])
            titles = [each.get_attribute("title") for each in row.locator("td.tinted").all()]
            later = range(1, DAYS // 7 - first)
            assert titles == [f"{came_back[first, n]} of {of_first[first]}, +{n}" for n in later]


def test_which_page_fails(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        counts = Counter(each.page_of_error for each in VISITS if each.page_of_error)
        assert bars(page, "Errors by page") == shown(counts)
        choose(page, "Events", "error")
        choose(page, "Errors by page", "/checkout")
        assert matching(page) == counts["/checkout"]
        page.get_by_role("link", name="Rows", exact=True).click()
        page.get_by_role("columnheader", name="Time").wait_for()
        settle(page)
        assert page.locator("tbody tr").count() == min(50, counts["/checkout"])
        assert matching(page) == counts["/checkout"]


def test_what_changed_since_last_week(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        page.get_by_role("button", name="7 days", exact=True).click()
        page.get_by_label("compare with").select_option("the period before")
        settle(page)
        last = visits_of_days(DAYS - 7, DAYS - 1)
        shift = timedelta(days=7)
        before = [
            each
            for each in visits_of_days(DAYS - 14, DAYS - 8)
            if each.begin + shift <= max(other.begin for other in last) + timedelta(minutes=8)
        ]
        assert figure(page, "Sessions") == str(len(last))
        changed = page.locator(".key", has=page.get_by_text("Sessions", exact=True)).locator(
            ".change"
        )
        assert changed.inner_text().startswith(f"other period: {len(before)} ")
        choose(page, "Devices", "phone")
        assert figure(page, "Sessions") == str(sum(each.device == "phone" for each in last))


def test_everything_can_be_exported(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        choose(page, "Devices", "tablet")
        visits = [each for each in VISITS if each.device == "tablet"]
        with page.expect_download() as begun:
            card(page, "Pages").get_by_role("link", name="CSV").click()
        lines = list(csv.reader(io.StringIO(Path(begun.value.path()).read_text(encoding="utf-8"))))
        pages = Counter(path for each in visits for path in each.pages)
        assert begun.value.suggested_filename == "pages.csv"
        assert dict(line[:2] for line in lines[1:]) == {name: str(n) for name, n in pages.items()}
        page.get_by_role("link", name="Rows", exact=True).click()
        with page.expect_download() as begun:
            page.get_by_role("link", name="CSV of all matching rows").click()
        lines = list(csv.reader(io.StringIO(Path(begun.value.path()).read_text(encoding="utf-8"))))
        assert lines[0][:2] == ["Time", "Event"]
        assert len(lines) - 1 == sum(len(each.steps) for each in visits)


def test_rows_are_paged(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address, "#/rows")
        seen = page.locator("tbody tr").count()
        while page.get_by_role("button", name="Older").is_enabled():
            last = page.locator("tbody tr").first.inner_text()
            page.get_by_role("button", name="Older").click()
            page.wait_for_function(
                "last => document.querySelector('tbody tr').innerText != last", arg=last
            )
            seen += page.locator("tbody tr").count()
        assert seen == len(EVENTS)


def test_views_are_saved_and_sent(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        choose(page, "Devices", "phone")
        of_phones = matching(page)
        page.get_by_role("button", name="Views").click()
        page.get_by_label("Name of this view").fill("<b>Phones</b>")
        page.get_by_role("button", name="Save").click()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Clear all").click()
        assert matching(page) == len(EVENTS)
        page.reload()
        page.get_by_role("button", name="Views").click()
        page.get_by_role("button", name="Rename <b>Phones</b>").click()
        page.get_by_label("New name of <b>Phones</b>").fill("Phones")
        page.get_by_role("button", name="Rename").click()
        page.get_by_role("link", name="Phones").click()
        page.get_by_role("button", name="Remove Device: phone").wait_for()
        assert matching(page) == of_phones
        sent = page.url
        page.get_by_role("button", name="Views").click()
        page.get_by_role("button", name="Delete Phones").click()
        page.get_by_text("None yet.").wait_for()
        with opened(browser) as other:
            visit(other, sent)
            assert matching(other) == of_phones


def test_the_keyboard_is_enough(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        visit(page, address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("/")
        page.get_by_label("Property", exact=True).select_option("Page")
        page.get_by_label("Value of the property").fill("/basket")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Remove Page: /basket").wait_for()
        only = sum("/basket" in each.pages for each in VISITS)
        assert bars(page, "Pages")["/basket"] == str(only)
        row = card(page, "Pages").get_by_role("button", name="/basket", exact=True)
        assert row.get_attribute("aria-pressed") == "true"
        row.focus()
        page.keyboard.press("Enter")
        assert matching(page) == len(EVENTS)


def test_the_servers_words_are_shown(browser: Browser, address: str) -> None:
    with opened(browser, is_refused=True) as page:
        page.goto(address + "#/?since=yesterday")
        page.get_by_role("alert").get_by_text("since=yesterday: give a day or a time").wait_for()
        page.get_by_role("button", name="All", exact=True).click()
        assert matching(page) == len(EVENTS)


def test_the_first_view_is_small_and_asks_nobody_else(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        loaded: dict[str, int] = {}
        page.on("response", lambda each: loaded.update({each.url: len(each.body())}))
        page.goto(address, wait_until="networkidle")
        settle(page)
        assert 80_000 < sum(loaded.values()) <= MOST_BYTES
        assert all(url.startswith(address) for url in loaded)
        print(f"{sum(loaded.values())} bytes are loaded for the first view")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_hostile_names_stay_names(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    fields: dict[str, Any] = {
        "screen": "400x800",
        "referrer": f"https://{'r' * 60}.example/<b>",
        "properties": {"<b>": HOSTILE[:900]},
    }
    marks = "?utm_campaign=%3Cscript%3Ealert(1)%3C/script%3E" + "c" * 500
    hostile: list[dict[str, Any]] = [
        event("hostile-1", name="<svg onload=alert(2)>", path=f"/{HOSTILE}", **fields),
        event(
            "hostile-2",
            path=f"/%22onclick=alert(3)%22{'p' * 900}{marks}",
            visitor="visitor-c",
            **fields,
        ),
        event("hostile-3", path=f"/{HOSTILE}", visitor="visitor-b", **fields),
        event("hostile-4", name="error", path=f"/{HOSTILE}", visitor="visitor-b", **fields),
    ]
    tables = take(tmp_path / "tables", 0, records(hostile))
    assert tables.frame("events").height == len(hostile)
    with pages_server(tmp_path) as server, opened(browser, width, scheme) as page:
        address = address_of(server)
        visit(page, address)
        assert page.locator("svg, [onerror], [onclick], .bars img").count() == 0
        assert fits(page)
        assert bars(page, "Pages").keys() == {f"/{HOSTILE}", f"/%22onclick=alert(3)%22{'p' * 900}"}
        choose(page, "Campaigns", f"<script>alert(1)</script>{'c' * 500}")
        assert matching(page) == 1
        assert fits(page)
        page.get_by_role("button", name="Clear all").click()
        choose(page, "Errors by page", f"/{HOSTILE}")
        assert fits(page)
        visit(page, address, "#/rows")
        assert fits(page)
        assert "<svg onload=alert(2)>" in page.locator("tbody").inner_text()
        step = f"{address}#/?step=%3Cimg%20src%3Dx%3E{'s' * 900}"
        visit(page, step)
        assert fits(page)


def test_what_is_happening_now(browser: Browser, tmp_path: Path) -> None:
    take(tmp_path / "tables", 0, records(EVENTS[:50]))
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        with (
            pages_server(tmp_path, "--bootstrap-server", servers) as server,
            opened(browser, 400) as page,
        ):
            visit(page, address_of(server))
            page.get_by_role("link", name="Now", exact=True).click()
            page.get_by_role("alert").get_by_text("there is no topic 'events'").wait_for()
            sent = 0
            for visitor, name in (("visitor-a", "pageview"), ("visitor-b", "error")):
                send(servers, visitor, name, range(sent, sent + 15))
                sent += 15
                page.locator("[data-now=hits] b", has_text=re.compile(f"^{sent}$")).wait_for()
            assert page.locator("[data-now=online] b").inner_text() == "2"
            assert page.locator("[data-now=errors] b").inner_text() == "15"
            assert page.get_by_role("alert").count() == 0
            assert page.locator(".live").inner_text() == "live"
            assert page.get_by_text("/basket").first.is_visible()
            assert fits(page)


def send(servers: str, visitor: str, name: str, numbers: range) -> None:
    with SyncProducer(servers) as producer:
        for number in numbers:
            now_ms = time.time_ns() // 1_000_000
            sent = event(f"now-{number:06}", now_ms, name, "/basket", visitor)
            producer.send("events", json.dumps(sent).encode())


def test_new_figures_appear_by_themselves(browser: Browser, tmp_path: Path) -> None:
    take(tmp_path / "tables", 0, records(EVENTS[:50]))
    with pages_server(tmp_path) as server, opened(browser) as page:
        visit(page, address_of(server))
        assert matching(page) == 50
        take(tmp_path / "tables", 1, records(EVENTS[50:80], first=50))
        wait_until(lambda: matching(page) == 80, 60)


def test_a_late_answer_is_discarded(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        held: list[Route] = []
        page.route(re.compile(r"api/cards\?device=phone"), lambda route: held.append(route))
        visit(page, address)
        card(page, "Devices").get_by_role("button", name="phone", exact=True).click()
        page.locator("[aria-busy=true]").first.wait_for()
        page.get_by_role("button", name="Remove Device: phone").click()
        choose(page, "Devices", "tablet")
        for route in held:
            route.continue_()
        # The server answers one request after the other.
        page.evaluate("fetch('api/cards').then(each => each.text())")
        assert matching(page) == events_of_visits(lambda each: each.device == "tablet")


def test_which_lines_of_the_logs(browser: Browser, tmp_path: Path) -> None:
    """Words find the lines, as they would be found in the file."""
    people = ("root", "alice", "mallory")
    lines = [
        f"Mar  2 10:{number // 60:02}:{number % 60:02} gate sshd[1]: Failed password for"
        f" {people[number % 3]} from 192.0.2.{number % 7} port {number} ssh2"
        for number in range(240)
    ]
    lines.append("Mar  2 11:00:00 gate app[2]: <img src=x onerror=alert(1)> " + "y" * 3_000)
    batch = log_records.records("auth.log", [each.encode() for each in lines], 0)
    log_records.write(Tables(tmp_path / "tables", LOGS), 0, batch, log_records.send)
    with pages_server(tmp_path) as server, opened(browser, 400, "dark") as page:
        visit(page, address_of(server))
        choose(page, "Components", "sshd")
        assert matching(page) == 240
        page.get_by_role("link", name="Rows", exact=True).click()
        settle(page)
        page.keyboard.press("/")
        page.keyboard.type("mallory")
        page.wait_for_url("**words=mallory")
        assert matching(page) == sum("mallory" in each for each in lines)
        page.get_by_role("button", name="Remove Words: mallory").click()
        page.get_by_role("button", name="Remove Component: sshd").click()
        assert matching(page) == len(lines)
        page.get_by_role("button", name="Details of the row").first.click()
        page.locator(".fields pre", has_text="y" * 3_000).wait_for()
        assert fits(page)


def test_a_stopped_server_is_named_and_the_figures_stay(browser: Browser, tmp_path: Path) -> None:
    take(tmp_path / "tables", 0, records(EVENTS[:50]))
    with pages_server(tmp_path) as server, opened(browser) as page:
        visit(page, address_of(server))
        server.stop()
        page.get_by_role("alert").get_by_text("The server does not answer.").first.wait_for()
        assert matching(page) == 50


def test_which_addresses_of_the_site_fail(browser: Browser, tmp_path: Path) -> None:
    """The same page shows access logs."""
    paths = ("/", "/basket", "/missing")
    lines = [
        line(
            f"198.18.0.{number % 9}",
            f"10:{number:02}:00",
            paths[number % 3],
            status=(200, 500, 404)[number % 3],
            agent="Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0",
        )
        for number in range(50)
    ]
    rows = table(record(each, number, position=number * 300) for number, each in enumerate(lines))
    tables = Tables(tmp_path / "tables", BEHAVIOUR)
    taken(tables, 0, "q", lambda each: in_tasks(rows, each), send_nothing)
    failed = Counter(paths[number % 3] for number in range(50) if number % 3)
    with pages_server(tmp_path) as server, opened(browser) as page:
        visit(page, address_of(server))
        assert bars(page, "Errors by page") == shown(failed)
        choose(page, "Statuses", "500")
        assert matching(page) == failed["/basket"]
        page.get_by_role("link", name="Requests", exact=True).click()
        page.get_by_role("columnheader", name="User agent").wait_for()
        settle(page)
        assert page.locator("tbody tr").count() == failed["/basket"]
