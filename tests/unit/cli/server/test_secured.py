"""What `--secure` sets, and what of it a user may set otherwise."""

from __future__ import annotations

from pathlib import Path

from barnabas.cli.server.secured import secured


def test_se_3_open_connections_end_an_hour_after_a_change_unless_set_otherwise(
    tmp_path: Path,
) -> None:
    where = str(tmp_path / "secure")
    _, configs = secured({}, where)
    assert configs["connections.max.reauth.ms"] == "3600000"
    _, configs = secured({"connections.max.reauth.ms": "0"}, where)
    assert configs["connections.max.reauth.ms"] == "0"


def test_ux_4_metrics_are_for_this_machine_unless_set_otherwise(tmp_path: Path) -> None:
    where = str(tmp_path / "secure")
    _, configs = secured({}, where)
    assert configs["barnabas.metrics.host"] == "localhost"
    _, configs = secured({"barnabas.metrics.host": "10.0.0.1"}, where)
    assert configs["barnabas.metrics.host"] == "10.0.0.1"
