"""Where a cluster on one machine is not started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli.cluster.command import cluster
from barnabas.cli.cluster.layout import Plan
from barnabas.cli.cluster.run import run
from barnabas.errors import ConfigError


def test_se_6_a_secured_cluster_refuses_a_directory_to_which_others_may_write(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cluster"
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(ConfigError, match=f"{path}: other users can write"):
        run(Plan(path, 2181, {1: 9092}, {}, is_secure=True))
    assert list(path.iterdir()) == []


def test_se_6_a_cluster_is_below_the_home_directory_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = CliRunner().invoke(cluster, ["stop"], standalone_mode=False)
    assert asked.return_value == 1
    assert f"no cluster in {tmp_path / 'barnabas-cluster'}" in asked.stderr
    helped = CliRunner().invoke(cluster, ["start", "--help"])
    assert "~/barnabas-cluster" in helped.output and "/tmp" not in helped.output


def test_a_cluster_starts_its_processes_before_it_loads_what_it_needs_later() -> None:
    """The client and asyncio take a tenth of a second, in which the processes can start."""
    code = (
        "import sys, barnabas.cli.app, barnabas.cli.cluster.command, barnabas.cli.cluster.run;"
        "print(*{'asyncio', 'ssl', 'barnabas.client.admin.admin'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
