from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.workspace import Workspace


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with Workspace(tmp_path / "out"):
        with pytest.raises(ConfigError, match="another run is using"):
            Workspace(tmp_path / "out", patience_s=0.1)
        with Workspace(tmp_path / "other", patience_s=0.1):
            pass
    with Workspace(tmp_path / "out", patience_s=0.1) as workspace:
        assert not workspace.is_full()
        assert workspace.input_path("access-1-5.log").parent.is_dir()


def test_a_place_that_cannot_be_written_ux_4(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="choose another directory with --out"):
        Workspace(tmp_path / "file" / "out")


def test_it_belongs_to_one_log(tmp_path: Path) -> None:
    """SP-4: offsets of another cluster, or of the run's own broker, are offsets of other lines."""
    with Workspace(tmp_path / "cluster") as workspace:
        workspace.check_own_broker()
        for _ in range(2):
            workspace.check_cluster("one")
        with pytest.raises(ConfigError, match="from the cluster one, but this is two: choose"):
            workspace.check_cluster("two")
        with pytest.raises(ConfigError, match="from the cluster one: give its addresses with "):
            workspace.check_own_broker()
    with Workspace(tmp_path / "own") as workspace:
        workspace.broker.mkdir()
        with pytest.raises(ConfigError, match="from a broker that the pipeline started: leave"):
            workspace.check_cluster("one")
        workspace.check_own_broker()
