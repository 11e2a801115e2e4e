"""Draws the pictures in `docs/pictures` anew, in a real browser in front of real brokers.

    python -m tests.kit.pictures demo incidents

`demo` is the picture of the README, `incidents` are those of docs/what-happened.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.kit.foreign import CHECKOUT
from tests.kit.pictures.demo_picture import demonstration, draw_demo
from tests.kit.pictures.incidents import INCIDENTS, site
from tests.kit.pictures.page_picture import tab
from tests.kit.processes.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES = CHECKOUT / "docs" / "pictures"


def main(names: Sequence[str]) -> int:
    with chromium() as browser:
        if "demo" in names:
            with demonstration() as url, tab(browser) as page:
                _write("console", draw_demo(page, url))
        if "incidents" in names:
            _draw_incidents(browser)
    return 0


def _draw_incidents(browser: Browser) -> None:
    with TemporaryDirectory() as directory, site(Path(directory)) as running:
        for incident in INCIDENTS:
            incident.cause(running)
            with tab(browser) as page:
                for picture in incident.find(page, running.url).pictures:
                    _write(picture.name, picture.svg)
            incident.repair(running)


def _write(name: str, svg: str) -> None:
    path = PICTURES / f"{name}.svg"
    path.write_text(svg, encoding="utf-8")
    print(f"{path.relative_to(CHECKOUT)}: {len(svg.encode())} bytes", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
