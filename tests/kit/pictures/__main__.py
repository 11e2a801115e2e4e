"""Draws the pictures in `docs/pictures` anew, in a real browser in front of real brokers.

    python -m tests.kit.pictures demo

`demo` is the picture of the README.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.kit.foreign import CHECKOUT
from tests.kit.pictures.demo_picture import demonstration, draw_demo
from tests.kit.pictures.page_picture import tab
from tests.kit.processes.chromium import chromium

PICTURES = CHECKOUT / "docs" / "pictures"


def main(names: Sequence[str]) -> int:
    with chromium() as browser:
        if "demo" in names:
            with demonstration() as url, tab(browser) as page:
                _write("console", draw_demo(page, url))
    return 0


def _write(name: str, svg: str) -> None:
    path = PICTURES / f"{name}.svg"
    path.write_text(svg, encoding="utf-8")
    print(f"{path.relative_to(CHECKOUT)}: {len(svg.encode())} bytes", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
