"""How long the tracker of pages holds up the main thread of a page, with a full queue.

    python -m benchmarks.tracker [--json FILE]

Chromium opens a page that contains nothing but the tracker, while 2,000 events of earlier visits
wait in its storage, which is the most that the tracker keeps. The server accepts each batch. The
trace of Chromium has the CPU time of each task of the main thread. The longest task of each of ten
pages is measured.
"""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas_track.page_script import SOURCE, compact
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

COMMAND: Final = "python -m benchmarks.tracker"
GOAL_MS: Final = 5.0
_REPEATED: Final = 10
_ORIGIN: Final = "http://shop.test/"
_SCRIPT: Final = f"{_ORIGIN}tracker.js"
_CATEGORIES: Final = ("toplevel", "devtools.timeline", "v8", "disabled-by-default-v8.compile")
_PAGES: Final = {
    "empty": "<!doctype html><title>Empty</title>",
    "page": "<!doctype html><title>Shop</title><body style='height: 3000px'>"
    "<script defer src='/tracker.js'></script>",
}
_CONTINUING: Final = {"TimerFire", "EventDispatch", "SimpleWatcher::OnHandleReady"}
_FILL: Final = """
for (let number = 0; number < 2000; number++) {
  const time = Date.now() - 1e6 + number;
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const event = {id, time, name: "heartbeat", url: "http://shop.test/page", visitor: id,
    session: id, properties: {view: id, seconds: number, scroll: 50, text: "x".repeat(100)}};
  localStorage.setItem("barnabas.event." + time + id, JSON.stringify(event));
}
"""
_LEFT: Final = "Object.keys(localStorage).filter(key => key.startsWith('barnabas.event.')).length"


def main() -> None:
    given = parser_of(__doc__).parse_args()
    with chromium() as browser:
        longest = [max(_tasks_ms(browser)) for _ in range(_REPEATED)]
    figures = [
        Figure("longest task, full queue, worst of ten pages", "ms", max(longest), GOAL_MS),
        Figure("longest task, full queue, median", "ms", statistics.median(longest), GOAL_MS),
    ]
    show("tracker", [each._replace(command=COMMAND) for each in figures], given.json)


def _tasks_ms(browser: Browser) -> list[float]:
    """Return the CPU time of each task of the tracker on one page, until its queue is empty."""
    context = browser.new_context()
    context.route("**/*", _answer)
    page = context.new_page()
    page.goto(_ORIGIN + "empty")
    page.evaluate(_FILL)
    browser.start_tracing(page=page, categories=[*_CATEGORIES])
    page.goto(_ORIGIN + "page")
    # The poll of this runs in tasks of its own.
    page.wait_for_function(f"{_LEFT} === 0", polling=1_000, timeout=120_000)
    trace = json.loads(browser.stop_tracing())["traceEvents"]
    context.close()
    return [*_tasks_of_script(trace)]


def _answer(route: Route) -> None:
    path = route.request.url.removeprefix(_ORIGIN)
    if path == "tracker.js":
        route.fulfill(body=compact(SOURCE.read_bytes()), content_type="text/javascript")
    elif path == "v1/events":
        route.fulfill(body="{}", content_type="application/json")
    else:
        route.fulfill(body=_PAGES.get(path, ""), content_type="text/html")


def _tasks_of_script(trace: list[dict[str, Any]]) -> Iterator[float]:
    """Yield the CPU time of the script itself, and of each task in which a timer, an event or an
    answer continued it.
    """
    [script] = [
        each
        for each in trace
        if each["name"] == "EvaluateScript" and _SCRIPT in json.dumps(each["args"])
    ]
    # The task that runs the script also parses the page.
    yield script.get("tdur", script["dur"]) / 1_000
    thread = (script["pid"], script["tid"])
    own = [each for each in trace if (each["pid"], each["tid"]) == thread and each["ts"]]
    own.sort(key=_begin)
    for task in own:
        begin, end = task["ts"], task["ts"] + task.get("dur", 0)
        if (
            "dur" not in task
            or not task["name"].endswith("RunTask")
            or begin < script["ts"] + script["dur"]
        ):
            continue
        first, last = (bisect_left(own, at, key=_begin) for at in (begin, end))
        names = {each["name"] for each in own[first:last]}
        # Playwright asks whether the queue is empty with a script that is parsed each time.
        if names & _CONTINUING and "V8.ParseProgram" not in names:
            yield task.get("tdur", task["dur"]) / 1_000


def _begin(event: dict[str, Any]) -> int:
    begin: int = event["ts"]
    return begin


if __name__ == "__main__":
    main()
