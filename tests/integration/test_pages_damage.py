"""BT-5: `barnabas pages serve` names a damaged table instead of failing without a word."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kit.pipeline.event_records import records, take
from tests.kit.pipeline.shop_visits import events_of, shop_visits
from tests.kit.processes.broker_process import COMMAND
from tests.kit.processes.web_console import pages_server


def test_bt_5_a_damaged_file_is_named(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    take(tables, 0, records(events_of(shop_visits()[:3])))
    with pages_server(tmp_path) as server:
        assert server.ask("/api/cards").status == 200
        files = [*tables.rglob("*.parquet")]
        for file in files:
            file.write_bytes(b"no Parquet" * 30)
        # The figures are computed from what is in memory.
        for path in ("/api/rows", "/api/rows.csv"):
            answer = server.ask(path)
            assert answer.status == 502
            error = answer.json["error"]
            assert error.startswith("the tables cannot be read: ")
            assert ".parquet" in error
        for file in files:
            file.unlink()
        for path in ("/api/rows", "/api/rows.csv"):
            answer = server.ask(path)
            assert answer.status == 502
            assert "If they were deleted or replaced" in answer.json["error"]
    for file in files:
        file.write_bytes(b"no Parquet" * 30)
    line = [COMMAND, "pages", "serve", str(tmp_path), "--port", "0"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"the tables in {tmp_path} cannot be read: " in done.stderr
    assert "Traceback" not in done.stderr
