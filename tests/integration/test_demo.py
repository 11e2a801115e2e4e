"""IN-7: `barnabas demo` runs a cluster, and its console explains what happens in it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.kit.processes.command_line import COMMAND
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def read(url: str) -> Any:
    with urlopen(url, timeout=30) as response:
        return json.load(response)


def causes(url: str, kind: str) -> list[str]:
    return [event["cause"] for event in read(f"{url}api/events?kind={kind}")["events"]]


def test_in_7_a_rebalance_and_a_failover_are_explained(tmp_path: Path) -> None:
    """IN-7: the pages that the command names show the causes of what it did."""
    with (
        (tmp_path / "errors").open("wb") as errors,
        subprocess.Popen(
            [COMMAND, "demo", "--port", "0"], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as demo,
    ):
        try:
            assert demo.stdout is not None
            lines = iter(demo.stdout.readline, "")
            opened = next(line for line in lines if line.startswith("Open the console: "))
            url = opened.split()[3]
            overview = read(f"{url}api/overview")
            assert overview["brokers"] == 3 and overview["topics"] >= 2
            assert any("joins the group analytics" in line for line in lines)
            wait_until(
                lambda: any(
                    "analytics-3" in cause and "joined" in cause
                    for cause in causes(url, "group-generation")
                ),
                60,
            )
            assert any("Broker 2 is killed" in line for line in lines)
            wait_until(lambda: "broker 2 failed: its session ended" in causes(url, "election"), 60)
            demo.send_signal(signal.SIGINT)
            demo.communicate(timeout=60)
        finally:
            demo.kill()
    assert (demo.returncode, (tmp_path / "errors").read_text()) == (0, "")
