"""Draws the console in front of `barnabas demo`, as the README shows it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.kit.pictures.page_picture import Part, draw, end_of
from tests.kit.processes.command_line import COMMAND

if TYPE_CHECKING:
    from playwright.sync_api import Page

_PATIENCE_MS: Final = 600_000
"""What a slow machine misses in one round of the demonstration comes again in the next one."""
_SHOWN: Final = (
    "Group reports has stopped",
    "session timed out",
    "Group checkout has had",
    "checkout-3",
)
"""Words of the findings that the picture has, and of their causes."""
_ARE_SHOWN: Final = """(words) => {
  const said = [...document.querySelectorAll(".finding")].map((each) => each.innerText).join();
  return words.every((each) => said.includes(each)) && !document.querySelector(".banner");
}"""


def draw_demo(page: Page, url: str) -> str:
    """Return the overview while one consumer is dead and another one restarts again and again."""
    page.goto(url)
    page.wait_for_function(_ARE_SHOWN, arg=_SHOWN, timeout=_PATIENCE_MS)
    return draw(page, Part(0, end_of(page, ".keys"), "The overview of the console"))


@contextmanager
def demonstration() -> Iterator[str]:
    """Run `barnabas demo` until the end of the block; yields the address of its console."""
    with subprocess.Popen(
        [COMMAND, "demo", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            lines = iter(demo.stdout.readline, "")
            yield next(line.split()[3] for line in lines if line.startswith("Open the console: "))
            demo.send_signal(signal.SIGINT)
            demo.communicate(timeout=60)
        finally:
            demo.kill()
