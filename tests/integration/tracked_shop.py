"""A shop of three pages that include the tracker, and visitors that click in a real browser."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.kit.processes.chromium import PATIENCE_MS

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

# The buttons have the name of their tab and the number of the click, so no two clicks are alike.
PAGE = """<!doctype html>
<html lang="en"><head><title>TITLE</title>
<script defer SCRIPT></script></head>
<body style="height: 3000px">
<button id="buy" data-track="buy">Buy</button>
<label id="label" data-track="gift"><input type="checkbox" id="gift"> as a gift</label>
<button id="plain">No event</button>
<a id="list" href="/">List</a> <a id="basket" href="/basket">Basket</a>
<script>
  const number = () => {
    document.querySelector("#buy").dataset.trackTab = sessionStorage.tab;
    document.querySelector("#buy").dataset.trackNumber = sessionStorage.clicks || 0;
  };
  sessionStorage.tab ||= new URLSearchParams(location.search).get("tab");
  document.querySelector("#buy").addEventListener("click", () => {
    sessionStorage.clicks = +(sessionStorage.clicks || 0) + 1;
    number();
  });
  number();
</script>
</body></html>
"""
TITLES = {"/": "List", "/product": "Product", "/basket": "Basket"}
PENDING = "Object.keys(localStorage).filter(key => key.startsWith('barnabas.event.')).length"


class Shop:
    """A web server on its own origin. `script` has the attributes of the script's element, and
    `example` is the page of `/example`.
    """

    def __init__(self, server: http.server.ThreadingHTTPServer) -> None:
        self.origin = f"http://localhost:{server.server_address[1]}"
        self.script = ""
        self.example = ""


@contextmanager
def shop() -> Iterator[Shop]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            title = TITLES.get(self.path.partition("?")[0])
            text = PAGE.replace("TITLE", title or "").replace("SCRIPT", running.script)
            if self.path == "/example":
                title, text = "Example", running.example
            self.send_response(200 if title else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    running = Shop(server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Visitors:
    """Tabs of one browser profile, and how often the button was clicked in each."""

    def __init__(self, context: BrowserContext, shop: Shop) -> None:
        context.set_default_timeout(PATIENCE_MS)
        self.context = context
        self.clicks: dict[str, int] = {}
        self._shop = shop

    def open(self, tab: str, page: Page | None = None) -> Page:
        """Visit the shop, by default in a new page. The tab must have a name of its own."""
        page = page or self.context.new_page()
        page.goto(f"{self._shop.origin}/?tab={tab}")
        self.clicks[tab] = 0
        return self.see(page)

    def see(self, page: Page) -> Page:
        """Wait until the page's tracker has started."""
        page.wait_for_function("window.barnabas")
        return page

    def buy(self, page: Page, times: int) -> None:
        page.bring_to_front()  # other tabs are not painted, so clicks there take seconds
        for _ in range(times):
            page.click("#buy")
        self.clicks[page.evaluate("sessionStorage.tab")] += times

    def made(self) -> set[tuple[str, str]]:
        """Return the tab and the number of each click."""
        return {(tab, str(each)) for tab, count in self.clicks.items() for each in range(count)}


def is_sent(page: Page) -> bool:
    """Return whether no event waits in the browser's storage."""
    found: int = page.evaluate(PENDING)
    return found == 0
