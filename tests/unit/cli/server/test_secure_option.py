"""What `--secure` sets, and what of it a user may set otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.server.secure_option import secure_configs
from barnabas.errors import ConfigError


def test_se_3_open_connections_end_an_hour_after_a_change_unless_set_otherwise(
    tmp_path: Path,
) -> None:
    where = str(tmp_path / "secure")
    _, configs = secure_configs({}, where)
    assert configs["connections.max.reauth.ms"] == "3600000"
    _, configs = secure_configs({"connections.max.reauth.ms": "0"}, where)
    assert configs["connections.max.reauth.ms"] == "0"


def test_ux_4_metrics_are_for_this_machine_unless_set_otherwise(tmp_path: Path) -> None:
    where = str(tmp_path / "secure")
    _, configs = secure_configs({}, where)
    assert configs["barnabas.metrics.host"] == "localhost"
    _, configs = secure_configs({"barnabas.metrics.host": "10.0.0.1"}, where)
    assert configs["barnabas.metrics.host"] == "10.0.0.1"


def test_a_log_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """It has the users and their rules: who replaces a file there owns the broker."""
    logs = [tmp_path / "a", tmp_path / "b", tmp_path / "not-yet"]
    for each in logs[:2]:
        each.mkdir(mode=0o700)
    configs = {"log.dirs": ",".join(map(str, logs))}
    where = str(tmp_path / "secure")
    secure_configs(configs, where)
    logs[1].chmod(0o770)
    with pytest.raises(ConfigError, match=f"{logs[1]}: other users can write to this directory"):
        secure_configs(configs, where)
    secure_configs({**configs, "zookeeper.connect": "localhost:2181"}, where)
    assert not logs[2].exists()
