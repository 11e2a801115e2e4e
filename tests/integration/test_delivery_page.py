"""GC-5: the examples of docs/delivery.md run as they stand and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import barnabas
from tests.foreign import CHECKOUT

PAGE = CHECKOUT / "docs" / "delivery.md"
DEFAULT_ADDRESS = "localhost:9092"
TIMEOUT_SECONDS = 180
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_each_level_does_and_loses_what_the_page_says(tmp_path: Path) -> None:
    """GC-5, DL-1: at most once loses one, at least once repeats one, exactly once neither."""
    text = PAGE.read_text(encoding="utf-8")
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("```python") == 4
    with barnabas.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        for code, expected in examples:
            done = subprocess.run(
                [sys.executable, "-c", code.replace(DEFAULT_ADDRESS, broker.bootstrap_servers)],
                cwd=tmp_path,
                env=dict(os.environ),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
            assert (done.returncode, done.stdout) == (0, expected), done.stdout + done.stderr
