"""UX-9: the procedures of the operators' pages are run, command by command, as they stand there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.page_blocks import Block, Machines, blocks
from tests.kit.processes.zookeeper_process import zookeeper_process


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Machines whose ZooKeeper no page needs."""
    found = Machines(tmp_path, "")
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def clustered(tmp_path: Path) -> Iterator[Machines]:
    """Machines with a ZooKeeper."""
    with zookeeper_process(tmp_path) as zookeeper:
        found = Machines(tmp_path, zookeeper.connect)
        try:
            yield found
        finally:
            found.stop()


def of_cluster(page: str) -> list[Block]:
    return [block for block in blocks(page) if "cluster" in block.words]


def of_one_broker(page: str) -> list[Block]:
    return [block for block in blocks(page) if "cluster" not in block.words]


def start(machines: Machines) -> None:
    """A broker alone on the first machine, as the pages start one."""
    line = "$ barnabas server start -daemon --data-dir /var/lib/barnabas\n...\n"
    machines.run(Block("console", ("one",), 0, line))


def test_the_first_records(machines: Machines) -> None:
    start(machines)
    for block in blocks("first-records.md"):
        machines.run(block)


@pytest.mark.slow
def test_a_broker_alone_is_backed_up_and_restored(machines: Machines) -> None:
    start(machines)
    lines = "$ barnabas topics create orders\n...\n$ seq 9 | barnabas produce orders\n"
    machines.run(Block("console", (), 0, lines))
    for block in of_one_broker("backup.md"):
        machines.run(block)
    check = "$ barnabas consume orders --from-beginning --exit-at-end | wc -l\n9\n"
    machines.run(Block("console", (), 0, check))


@pytest.mark.slow
def test_three_machines_and_their_maintenance(clustered: Machines) -> None:
    for page in ("three-machines.md", "sizing.md", "maintenance.md"):
        for block in blocks(page):
            clustered.run(block)


@pytest.mark.slow
def test_a_cluster_is_backed_up_and_restored(clustered: Machines) -> None:
    for block in [*blocks("three-machines.md"), *of_cluster("backup.md")]:
        clustered.run(block)
