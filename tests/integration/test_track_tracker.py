"""BT-2: the tracker of a shop's pages in a real browser: what visitors do is in the topic, whoever
is killed meanwhile."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import barnabas
from tests.integration.tracked_shop import Shop, Visitors, is_sent, shop
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.track_server import Tracking, records, tracking
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

pytestmark = pytest.mark.slow

MOST_BYTES = 3 * 1024
# A browser waits up to a minute between two tries.
DRAINED_S = 180.0
COUNT_LISTINGS = """
window.listings = 0;
const list = Reflect.ownKeys;
Reflect.ownKeys = (value) => {
  if (value === localStorage) listings++;
  return list(value);
};
"""
# Without `Reflect.ownKeys`, which is counted.
QUEUE_IS_EMPTY = "!JSON.stringify(localStorage).includes('barnabas.event.')"
ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def tracked() -> Iterator[Shop]:
    with shop() as running:
        yield running


@pytest.fixture(scope="module")
def server(servers: str, tracked: Shop) -> Iterator[Tracking]:
    with tracking(servers, tracked.origin) as running:
        yield running


@pytest.fixture
def visitors(browser: Browser, server: Tracking, tracked: Shop) -> Iterator[Visitors]:
    tracked.script = f'src="http://127.0.0.1:{server.port}/tracker.js"'
    context = browser.new_context(viewport={"width": 800, "height": 600})
    yield Visitors(context, tracked)
    context.close()


def events(servers: str) -> dict[str, dict[str, Any]]:
    """Return the events by id. Fails if there are two with the same id."""
    found = [json.loads(each.value or b"") for each in records(servers, "events")]
    assert len({each["id"] for each in found}) == len(found)
    assert records(servers, "events-rejected") == []
    return {each["id"]: each for each in found}


def test_the_script_is_small_and_cached(server: Tracking) -> None:
    answer = server.ask("/tracker.js", Accept_Encoding="gzip")
    assert (answer.status, answer.headers["content-encoding"]) == (200, "gzip")
    assert len(answer.body) <= MOST_BYTES
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "max-age=3600" in answer.headers["cache-control"]
    tag = answer.headers["etag"]
    again = server.ask("/tracker.js", If_None_Match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert b"//" not in server.ask("/tracker.js").body


def test_what_a_visitor_does_becomes_events(
    servers: str, visitors: Visitors, tracked: Shop
) -> None:
    before = events(servers)
    page = visitors.open("first")
    visitors.buy(page, 2)
    page.click("#plain")
    # The browser then clicks on the input, too. `page.click` would click on that alone.
    box = page.locator("label").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + 5)
    page.evaluate("history.pushState({}, '', '/product?utm_campaign=spring')")
    page.evaluate("history.replaceState({}, '', '/product?utm_campaign=spring#reviews')")
    page.evaluate("barnabas.track('search', {words: ['red', 'shoe'], results: 3})")
    page.evaluate("setTimeout(() => { throw new Error('broken') })")
    page.evaluate("void Promise.reject(new Error('refused'))")
    page.evaluate("scrollTo(0, 1500)")
    page.go_back()
    page.click("#basket")
    visitors.see(page)
    wait_until(lambda: is_sent(page))
    found = [each for id_, each in events(servers).items() if id_ not in before]
    origin = tracked.origin
    views = [(each["url"], each["referrer"]) for each in found if each["name"] == "pageview"]
    assert views == [
        (f"{origin}/?tab=first", ""),
        (f"{origin}/product?utm_campaign=spring", f"{origin}/?tab=first"),
        (f"{origin}/?tab=first", f"{origin}/product?utm_campaign=spring"),
        (f"{origin}/basket", f"{origin}/?tab=first"),
    ]
    by_name = {each["name"]: each for each in found}
    counts = Counter(each["name"] for each in found)
    assert (counts["buy"], counts["gift"], counts["search"], counts["error"]) == (2, 1, 1, 2)
    assert by_name["buy"]["properties"] == {"tab": "first", "number": "1"}
    assert by_name["search"]["properties"] == {"words": ["red", "shoe"], "results": 3}
    errors = [each["properties"]["message"] for each in found if each["name"] == "error"]
    assert errors == ["Uncaught Error: broken", "refused"]
    assert by_name["pageview"]["screen"] == "800x600"
    beats = [each["properties"] for each in found if each["name"] == "heartbeat"]
    assert max(each["scroll"] for each in beats) >= 60
    assert {each["view"] for each in beats} <= {each["id"] for each in found}
    assert {"ttfb", "fcp"} <= by_name["vitals"]["properties"].keys()
    assert len({each["visitor"] for each in found}) == len({each["session"] for each in found}) == 1
    assert visitors.context.cookies() == []


def test_nothing_is_stored_or_sent_before_consent(
    servers: str, visitors: Visitors, tracked: Shop
) -> None:
    before = events(servers)
    tracked.script += ' data-consent="required"'
    page = visitors.open("asked")
    visitors.buy(page, 2)
    assert page.evaluate("Object.keys(localStorage)") == []
    page.evaluate("barnabas.consent(true)")
    visitors.buy(page, 1)
    page.click("#basket")  # whose page does not ask again
    visitors.see(page)
    wait_until(lambda: is_sent(page))
    found = [each for id_, each in events(servers).items() if id_ not in before]
    assert [each["name"] for each in found if each["name"] != "heartbeat"][:2] == [
        "pageview",
        "buy",
    ]
    assert Counter(each["name"] for each in found)["pageview"] == 2
    page.evaluate("barnabas.consent(false)")
    assert page.evaluate("Object.entries(localStorage)") == [["barnabas.consent", "0"]]
    assert page.evaluate("sessionStorage['barnabas.session']") is None
    page.evaluate("barnabas.track('search')")
    assert is_sent(page)


def test_who_asks_not_to_be_followed_is_counted_without_ids(
    servers: str, browser: Browser, server: Tracking, tracked: Shop
) -> None:
    before = events(servers)
    tracked.script = f'src="http://127.0.0.1:{server.port}/tracker.js"'
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(navigator, 'globalPrivacyControl', {value: true})"
    )
    visitors = Visitors(context, tracked)
    page = visitors.open("private")
    visitors.buy(page, 3)
    assert page.evaluate("Object.keys(localStorage)") == []
    page.close(run_before_unload=True)
    wait_until(lambda: len(bought(events(servers), before)) == 3)
    found = [each for id_, each in events(servers).items() if id_ not in before]
    assert [each for each in found if "visitor" in each or "session" in each] == []
    context.close()


def test_only_one_of_two_tabs_sends_an_event(visitors: Visitors) -> None:
    sent: list[str] = []
    visitors.context.on("requestfinished", lambda request: sent.extend(ids_in(request)))
    pages = [visitors.open(tab) for tab in ("left", "right")]
    for _ in range(3):
        visitors.context.set_offline(True)
        for page in pages:
            visitors.buy(page, 3)
        visitors.context.set_offline(False)  # both tabs hear of it, and have all events
        wait_until(lambda: is_sent(pages[0]))
    assert len(sent) >= 2 + 18
    assert [id_ for id_, count in Counter(sent).items() if count > 1] == []


def test_a_full_queue_is_not_listed_for_each_batch(visitors: Visitors) -> None:
    """BT-2: listing it is what costs the page time."""
    page = visitors.context.new_page()
    page.add_init_script(COUNT_LISTINGS)
    visitors.open("full", page)
    wait_until(lambda: is_sent(page))
    visitors.context.set_offline(True)
    page.evaluate("for (let each = 0; each < 1000; each++) barnabas.track('waiting')")
    requests: list[str] = []
    page.on("requestfinished", lambda request: requests.extend(ids_in(request)[:1]))
    page.evaluate("listings = 0")
    visitors.context.set_offline(False)
    while not page.evaluate(QUEUE_IS_EMPTY):
        page.wait_for_timeout(50)
    assert len(requests) >= 10
    assert page.evaluate("listings") < len(requests)


def test_the_last_events_are_sent_while_the_last_page_closes(
    servers: str, visitors: Visitors
) -> None:
    before = events(servers)
    page = visitors.open("closed")
    visitors.buy(page, 3)
    page.close(run_before_unload=True)
    wait_until(lambda: len(bought(events(servers), before)) == 3)


def ids_in(request: Request) -> list[str]:
    """Return the ids of the events in a request of the tracker."""
    if request.method != "POST":
        return []
    return [each["id"] for each in json.loads(request.post_data or "")["events"]]


@pytest.mark.parametrize(
    ("status", "is_kept"),
    [(400, False), (413, False), (415, False), (403, True), (408, True), (429, True), (503, True)],
)
def test_only_events_that_can_never_be_accepted_are_dropped(
    visitors: Visitors, status: int, is_kept: bool
) -> None:
    """A proxy in front of the server may answer with any status."""
    page = visitors.context.new_page()
    page.route("**/v1/events", lambda route: route.fulfill(status=status, headers=ANY_ORIGIN))
    with page.expect_response("**/v1/events"):
        visitors.open("answered", page)
    if not is_kept:
        wait_until(lambda: is_sent(page))
        return
    with page.expect_response("**/v1/events"):
        assert not is_sent(page)
    page.unroute("**/v1/events")
    wait_until(lambda: is_sent(page))


def test_the_examples_of_the_page_work(
    servers: str, visitors: Visitors, server: Tracking, tracked: Shop
) -> None:
    before = events(servers)
    text = (CHECKOUT / "docs" / "tracking.md").read_text(encoding="utf-8")
    page = visitors.context.new_page()
    examples = re.findall(r"^```html\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for example in (each for each in examples if "tracker.js" in each):
        tracked.example = example.replace(
            "https://track.example", f"http://127.0.0.1:{server.port}"
        )
        page.goto(f"{tracked.origin}/example")
        visitors.see(page).get_by_role("button").first.click()
    wait_until(lambda: is_sent(page))
    found = [each for id_, each in events(servers).items() if id_ not in before]
    [basket] = [each for each in found if each["name"] == "add-to-basket"]
    [search] = [each for each in found if each["name"] == "search"]
    assert basket["properties"] == {"item": "shoe-42"}
    assert search["properties"] == {"words": "red shoe", "results": 3}
    assert Counter(each["name"] for each in found)["pageview"] == 3
    assert page.evaluate("localStorage['barnabas.consent']") == "1"


def bought(found: dict[str, dict[str, Any]], before: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the clicks on the button that are not in `before`."""
    return [each for id_, each in found.items() if each["name"] == "buy" and id_ not in before]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path) as running:
        yield running


@pytest.mark.parametrize(
    ("times", "rounds"), [(20, 1), pytest.param(20, 5, marks=pytest.mark.soak)]
)
@pytest.mark.timeout(1_500)
def test_each_click_is_there_whoever_is_killed(
    broker: BrokerProcess, tracked: Shop, browser: Browser, times: int, rounds: int
) -> None:
    """The server forgets ids when it is killed, so the reader counts each id once."""
    with tracking(broker.bootstrap_servers, tracked.origin) as server:
        tracked.script = f'src="http://127.0.0.1:{server.port}/tracker.js"'
        context = browser.new_context()
        visitors = Visitors(context, tracked)
        for each in range(rounds):
            make_trouble(Trouble(broker, server, visitors, times), f"round{each}")
        page = visitors.open("last")
        wait_until(lambda: is_sent(page), DRAINED_S)
        context.close()
        found = [
            json.loads(each.value or b"") for each in records(broker.bootstrap_servers, "events")
        ]
        assert records(broker.bootstrap_servers, "events-rejected") == []
    clicks = {each["id"]: each["properties"] for each in found if each["name"] == "buy"}
    assert sum(visitors.clicks.values()) == 10 * times * rounds
    sent = Counter((each["tab"], each["number"]) for each in clicks.values())
    assert sent == Counter(visitors.made())
    again = len(found) - len({each["id"] for each in found})
    print(f"{len(clicks)} clicks, {len(found)} records, {again} of them repeated")


class Trouble(NamedTuple):
    """Whom a round may kill, and how often it clicks each time."""

    broker: BrokerProcess
    server: Tracking
    visitors: Visitors
    times: int


def make_trouble(trouble: Trouble, name: str) -> None:
    """Make ten times as many clicks as `times`, and let nothing work meanwhile."""
    broker, server, visitors, times = trouble
    # A page is closed while its request waits for the brokers.
    closing = visitors.open(f"{name}-closing")
    visitors.buy(closing, times)
    broker.kill()
    with closing.expect_request("**/v1/events"):
        visitors.buy(closing, times)
    closing.close()
    first, second = (visitors.open(f"{name}-{each}") for each in ("first", "second"))
    visitors.buy(first, times)
    broker.start()
    server.kill()
    visitors.buy(first, times)
    visitors.buy(second, times)
    server.start()
    # Both tabs, one after the other.
    for _ in range(times):
        visitors.buy(first, 1)
        visitors.buy(second, 1)
    first.evaluate("history.pushState({}, '', '/product')")
    visitors.context.set_offline(True)
    visitors.buy(first, times)
    visitors.context.set_offline(False)
    visitors.buy(first, times)
    first.bring_to_front()
    first.click("#basket")
    visitors.buy(visitors.see(first), times)
    # Their last events are left to the next round's pages.
    first.close()
    second.close()
