"""A real browser, whose tabs report all that goes wrong in a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.kit.foreign import require_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

GONE = "net::ERR_CONNECTION_REFUSED"
REFUSED = "the server responded with a status of 4"
PATIENCE_MS = 30_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser until the end of the block."""
    program = require_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=60_000
        )
        yield running
        running.close()


@contextmanager
def opened(
    browser: Browser, width: int = 1400, scheme: str = "light", *, is_refused: bool = False
) -> Iterator[Page]:
    """A tab, in which nothing may go wrong, except that a console that was stopped is gone.

    With `is_refused`, the server may also refuse what the page asks for.
    """
    wrong: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()

    def on_console(said: ConsoleMessage) -> None:
        if GONE not in said.text and not (is_refused and REFUSED in said.text):
            wrong.append(f"{said.type}: {said.text}")

    def on_dialog(dialog: Dialog) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", on_dialog)
    try:
        yield page
        assert page.locator("img, script:not([src])").count() == 0
        assert wrong == []
    finally:
        context.close()
