"""MX-3: a step that is interrupted finds its progress again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.migrate.facts import BARNABAS, KAFKA
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.state_file import State, lock_state, read_state, write_state
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition

NAME = TopicPartition("a-b", 3)
STATE = State(
    "cluster", BARNABAS, (1,), Progress(2, {NAME: 7}, {NAME: 99}, ("/srv",), has_stopped=True)
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """MX-3"""
    path = tmp_path / "state.json"
    assert read_state(path, "cluster", BARNABAS) == State("cluster", BARNABAS)
    write_state(path, STATE)
    assert read_state(path, "cluster", BARNABAS) == STATE
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_a_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    """A step that was begun by it can be continued."""
    path = tmp_path / "state.json"
    write_state(path, STATE)
    values = json.loads(path.read_text())
    del values["current"]["tails"], values["current"]["directories"]
    path.write_text(json.dumps(values))
    current = read_state(path, "cluster", BARNABAS).current
    assert current == Progress(2, {NAME: 7}, has_stopped=True)


def test_two_commands_do_not_use_the_same_file(tmp_path: Path) -> None:
    """MX-3"""
    path = tmp_path / "state.json"
    in_use = pytest.raises(ConfigError, match="in use by another `barnabas migrate")
    with lock_state(path), lock_state(tmp_path / "other.json"), in_use, lock_state(path):
        pass
    with lock_state(path):
        pass


def test_a_lock_that_is_impossible_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "state.json"
    problem = r"/state\.json: the progress cannot be saved: no such"
    with pytest.raises(ConfigError, match=problem), lock_state(path):
        pass


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """MX-3: nothing is done without the progress of before."""
    path = tmp_path / "state.json"
    write_state(path, STATE)
    whole = path.read_bytes()
    for length in range(len(whole) - 2):
        path.write_bytes(whole[:length])
        with pytest.raises(ConfigError, match=r"or is damaged: .*--without-state"):
            read_state(path, "cluster", BARNABAS)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="or is damaged"):
        read_state(path, "cluster", BARNABAS)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        read_state(tmp_path, "cluster", BARNABAS)


def test_the_file_of_another_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_state(path, STATE)
    with pytest.raises(ConfigError, match="belongs to cluster cluster, not to other"):
        read_state(path, "other", BARNABAS)


def test_the_direction_changes_between_brokers_and_within_a_step(tmp_path: Path) -> None:
    """MX-3: a broker that does not start as the new kind returns to the old one."""
    path = tmp_path / "state.json"
    assert STATE.current is not None
    started = STATE.current._replace(has_started=True, is_verified=True)
    write_state(path, STATE._replace(current=started))
    assert read_state(path, "cluster", KAFKA) == State("cluster", KAFKA, current=STATE.current)
    write_state(path, STATE._replace(current=None))
    assert read_state(path, "cluster", KAFKA) == State("cluster", KAFKA)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "state.json"
    with pytest.raises(ConfigError, match=r"/state\.json: the progress cannot be saved: no such"):
        write_state(path, STATE)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 9}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_state(path, "cluster", BARNABAS)
