"""MX-3: a step that is interrupted finds its progress again."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.migrate.facts import BARNABAS, KAFKA
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.state_file import State, read_state, write_state
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition

NAME = TopicPartition("a-b", 3)
STATE = State("cluster", BARNABAS, (1,), Progress(2, {NAME: (2, 1)}, {NAME: 7}, has_stopped=True))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """MX-3"""
    path = tmp_path / "state.json"
    assert read_state(path, "cluster", BARNABAS) == State("cluster", BARNABAS)
    write_state(path, STATE)
    assert read_state(path, "cluster", BARNABAS) == STATE
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_the_file_of_another_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_state(path, STATE)
    with pytest.raises(ConfigError, match="belongs to cluster cluster, not to other"):
        read_state(path, "other", BARNABAS)


def test_the_direction_changes_only_between_brokers(tmp_path: Path) -> None:
    """MX-3"""
    path = tmp_path / "state.json"
    write_state(path, STATE)
    with pytest.raises(ConfigError, match="broker 2 is being replaced by barnabas"):
        read_state(path, "cluster", KAFKA)
    write_state(path, STATE._replace(current=None))
    assert read_state(path, "cluster", KAFKA) == State("cluster", KAFKA)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 9}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_state(path, "cluster", BARNABAS)
