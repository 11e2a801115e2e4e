"""BT-2: the Python client of servers, before a real `barnabas track serve`."""

from __future__ import annotations

import http.server
import json
import multiprocessing
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas_track import InvalidEvent, NotSent, Tracker, TrackerClosed, TrackerFull
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import broker_process, free_port
from tests.kit.processes.track_server import Tracking, records, tracking


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def server(servers: str) -> Iterator[Tracking]:
    with tracking(servers) as running:
        yield running


def url(server: Tracking) -> str:
    return f"http://127.0.0.1:{server.port}/"


def events(servers: str) -> list[dict[str, Any]]:
    return [json.loads(each.value or b"") for each in records(servers, "events")]


def test_an_event_has_its_fields_and_properties(server: Tracking, servers: str) -> None:
    with Tracker(url(server)) as tracker:
        id_ = tracker.track("order", visitor="visitor-1", session="session-1", total=12.5)
        tracker.flush()
        [found] = [each for each in events(servers) if each["id"] == id_]
    assert (found["name"], found["visitor"], found["session"]) == (
        "order",
        "visitor-1",
        "session-1",
    )
    assert (found["properties"], found["bot"]) == ({"total": 12.5}, False)


def test_many_threads_send_each_event_once(server: Tracking, servers: str) -> None:
    with Tracker(url(server), most_events=5_000) as tracker:

        def track() -> None:
            for number in range(1_000):
                tracker.track("many", number=number, text="x" * 300)

        threads = [threading.Thread(target=track) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    numbers = Counter(
        each["properties"]["number"] for each in events(servers) if each["name"] == "many"
    )
    assert numbers == Counter(dict.fromkeys(range(1000), 3))


def test_what_the_server_would_reject_is_refused_at_once(server: Tracking) -> None:
    with Tracker(url(server)) as tracker:
        with pytest.raises(InvalidEvent, match=r"^visitor: not 8 to 64 of"):
            tracker.track("order", visitor="anna@shop.example")
        with pytest.raises(InvalidEvent, match=r"^name: not a printable text"):
            tracker.track("")
        with pytest.raises(InvalidEvent, match=r"^properties: .* not JSON serializable"):
            tracker.track("order", when=object())
        with pytest.raises(InvalidEvent, match=r"^an event may have at most 16,384 bytes"):
            tracker.track("order", texts=["x" * 1_000] * 20)
    with pytest.raises(TrackerClosed):
        tracker.track("order")
    with pytest.raises(ValueError, match="not an address that begins with http"):
        Tracker("localhost:8081")


def test_without_a_server_the_queue_is_bounded_and_says_why() -> None:
    tracker = Tracker(f"http://127.0.0.1:{free_port()}", most_events=3)
    for _ in range(3):
        tracker.track("order")
    with pytest.raises(NotSent, match=r"^3 events are not sent after 1 s: .*refused"):
        tracker.flush(1)
    assert "refused" in tracker.trouble
    with pytest.raises(TrackerFull, match=r"^3 events are in the queue: .*refused"):
        tracker.track("order")
    with pytest.raises(NotSent):
        tracker.close(0.1)


def test_another_server_is_recognised() -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    page = http.server.HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=page.serve_forever)
    thread.start()
    tracker = Tracker(f"http://127.0.0.1:{page.server_address[1]}")
    tracker.track("order")
    with pytest.raises(NotSent, match="something other than `barnabas track serve`"):
        tracker.close(2)
    page.shutdown()
    thread.join()
    page.server_close()


def test_a_forked_process_sends_its_own_events(server: Tracking, servers: str) -> None:
    tracker = Tracker(url(server))
    tracker.track("before-fork")

    def track() -> None:
        tracker.track("after-fork")
        tracker.close()

    child = multiprocessing.get_context("fork").Process(target=track)
    child.start()
    child.join()
    assert child.exitcode == 0
    tracker.close()
    names = Counter(each["name"] for each in events(servers))
    assert (names["before-fork"], names["after-fork"]) == (1, 1)


@pytest.mark.slow
def test_each_event_is_there_whoever_is_killed(tmp_path: Path) -> None:
    """The server forgets ids when it is killed, so the reader counts each id once."""
    with broker_process(tmp_path) as broker, tracking(broker.bootstrap_servers) as server:
        sent: set[str] = set()
        with Tracker(url(server)) as tracker:

            def track() -> None:
                sent.update(tracker.track("order", number=each) for each in range(200))

            for _ in range(2):
                track()
                broker.kill()
                track()
                broker.start()
                track()
                server.kill()
                track()
                server.start()
            tracker.flush(120)
        found = {each["id"] for each in events(broker.bootstrap_servers)}
    assert len(sent) == 1_600
    assert found == sent


def test_the_example_of_the_page_runs(server: Tracking, servers: str) -> None:
    text = (CHECKOUT / "docs" / "tracking.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = code.replace("http://localhost:8081", url(server))
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    found = events(servers)[-1]
    assert (found["url"], found["properties"]) == ("https://shop.example/pay", {"total": 12.5})
