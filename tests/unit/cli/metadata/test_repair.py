"""`metadata repair`: what it does, and what it leaves to the operator (ZK-6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.cli.main import EXIT_FAILURE, EXIT_OK, main
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import JOURNAL_NAME
from barnabas.cluster.store import Create
from barnabas.storage.files import OsFiles


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """Two copies with three topics."""
    first, second = tmp_path / "a", tmp_path / "b"

    async def write() -> None:
        for each in (first, second):
            each.mkdir()
        store = EmbeddedStore.open(first, second)
        await store.commit([Create("/brokers"), Create("/brokers/topics")])
        for name in "xyz":
            await store.commit([Create(f"/brokers/topics/{name}", b"{}")])
        await store.close()

    asyncio.run(write())
    return first, second


def _damage(directory: Path) -> bytes:
    path = directory / JOURNAL_NAME
    content = bytearray(path.read_bytes())
    content[content.index(b"topics/y")] ^= 1
    path.write_bytes(content)
    return bytes(content)


def test_a_copy_is_repaired_from_the_other(
    directories: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    damaged = _damage(directories[0])
    options = [word for each in directories for word in ("--dir", str(each))]
    assert main(["metadata", "repair", *options]) == EXIT_OK
    output = capfd.readouterr().out
    assert "the last commit is 4, with 3 topics." in output
    kept = directories[0] / f"{JOURNAL_NAME}.damaged"
    assert f"The damaged file is kept as {kept}." in output and kept.read_bytes() == damaged
    assert main(["metadata", "ls", "/brokers/topics", "--dir", str(directories[0])]) == EXIT_OK
    assert capfd.readouterr().out == "x\ny\nz\n"


def test_a_loss_is_accepted_only_if_the_operator_says_so(
    directories: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    alone = directories[0]
    damaged = _damage(alone)
    assert main(["metadata", "repair", "--dir", str(alone)]) == EXIT_FAILURE
    assert "--accept-loss" in capfd.readouterr().err
    assert (alone / JOURNAL_NAME).read_bytes() == damaged
    assert main(["metadata", "repair", "--accept-loss", "--dir", str(alone)]) == EXIT_OK
    assert "with 1 topic." in capfd.readouterr().out
    assert (alone / f"{JOURNAL_NAME}.damaged").read_bytes() == damaged


def test_a_broker_that_runs_is_in_the_way(
    directories: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    lock = OsFiles().lock(directories[0] / ".lock")
    assert main(["metadata", "repair", "--dir", str(directories[0])]) == EXIT_FAILURE
    assert "in use by a running broker" in capfd.readouterr().err
    lock.release()


def test_one_directory_of_several_is_not_repaired_alone(
    directories: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each would go on with its own history, and the broker refuses both."""
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={directories[0]},{directories[1]}\n")
    for each in directories:
        _damage(each)
    repair = ["metadata", "repair", "--accept-loss"]
    alone = ["--dir", str(directories[0])]
    assert main([*repair, "--config", str(config), *alone]) == EXIT_FAILURE
    assert f"are {directories[0]}, {directories[1]}: name all of them" in capfd.readouterr().err
    assert main([*repair, "--config", str(config)]) == EXIT_OK
    captured = capfd.readouterr()
    assert f"in {directories[0]}, {directories[1]} can be read" in captured.out
    assert captured.err == ""
    assert main([*repair, *alone]) == EXIT_OK
    assert "if the broker has log directories other than" in capfd.readouterr().err
    directories[1].rename(tmp_path / "elsewhere")
    assert main([*repair, "--config", str(config)]) == EXIT_FAILURE
    assert f"{directories[1]}, which {config} names, cannot be found" in capfd.readouterr().err
    assert main(["metadata", "repair"]) != EXIT_OK
    assert "--config" in capfd.readouterr().err
