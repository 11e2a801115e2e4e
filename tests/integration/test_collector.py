"""The collector beside a web server whose log is rotated, in every way that is in use."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.client.sync.producer import SyncAdmin
from barnabas_collector.registry import Registry
from barnabas_pipeline.collector import Collected, Collector, Follower
from tests.kit.pipeline.topics import create, delete, records_of

_TOPICS = itertools.count()


class Site:
    """A log, its collector with a registry, and what has arrived in the topic."""

    def __init__(self, broker: barnabas.Broker, directory: Path) -> None:
        self.broker = broker
        self.log = directory / "access.log"
        self.log.touch()
        self._registry = directory / "registry.json"
        self.topic = create(broker, f"collected-{next(_TOPICS)}")

    def collector(self) -> Collector:
        return Collector(self.broker.bootstrap_servers, self.topic, Registry(self._registry))

    def collect(self) -> Collected:
        """A run without --service."""
        with self.collector() as collector:
            return collector.collect(self.log)

    def rotated(self, number: int) -> Path:
        return self.log.with_name(f"access.log.{number}")

    def lines(self) -> list[bytes]:
        return [record.value or b"" for record in records_of(self.broker, self.topic)]

    def sent(self) -> int:
        return Registry(self._registry).lines_sent()


@pytest.fixture
def site(broker: barnabas.Broker, tmp_path: Path) -> Site:
    return Site(broker, tmp_path)


@pytest.fixture
def follower(site: Site) -> Iterator[Follower]:
    with site.collector() as collector, Follower(collector, site.log) as follower:
        yield follower


def grow(site: Site, partitions: int) -> None:
    with SyncAdmin(site.broker.bootstrap_servers) as admin:
        admin.create_partitions(site.topic, partitions)


def places(site: Site, partitions: int) -> list[tuple[bytes, int]]:
    """Each record with its partition."""
    return [
        (record.value or b"", partition)
        for partition in range(partitions)
        for record in records_of(site.broker, site.topic, partition)
    ]


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def rotate_twice(site: Site) -> None:
    """After its first line: the second one is in .2, the third in .1, the fourth in the log."""
    append(site.log, b"2 b\n")
    site.log.rename(site.rotated(2))
    site.rotated(1).write_bytes(b"3 c\n")
    site.log.write_bytes(b"4 d\n")


def compress(path: Path) -> None:
    with gzip.open(path.with_name(path.name + ".gz"), "wb") as file:
        file.write(path.read_bytes())
    path.unlink()


def test_what_is_written_before_a_late_reload_is_not_lost(site: Site, follower: Follower) -> None:
    with site.log.open("ab", buffering=0) as server:
        server.write(b"1 first\n")
        follower.poll()
        site.log.rename(site.rotated(1))
        site.log.touch()
        follower.poll()
        server.write(b"2 late\n")
        append(site.log, b"3 new\n")
        follower.poll()
        site.rotated(1).unlink()
        server.write(b"4 later, and nameless\n")
        follower.poll()
    assert site.lines() == [b"1 first", b"2 late", b"3 new", b"4 later, and nameless"]


def test_of_two_rotations_between_two_polls_the_middle_file_is_read(
    site: Site, follower: Follower
) -> None:
    append(site.log, b"1 a\n")
    follower.poll()
    rotate_twice(site)
    follower.poll()
    follower.poll()
    assert site.lines() == [b"1 a", b"2 b", b"3 c", b"4 d"]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_rotations_while_nothing_runs_lose_nothing(site: Site, is_compressed: bool) -> None:
    append(site.log, b"1 a\n")
    site.collect()
    rotate_twice(site)
    if is_compressed:
        compress(site.rotated(2))
        compress(site.rotated(1))
    site.collect()
    site.collect()
    assert site.lines() == [b"1 a", b"2 b", b"3 c", b"4 d"]
    assert site.sent() == 4


@pytest.mark.parametrize("header", [b"#Fields: date time\n", b"\n"])
def test_a_new_file_with_the_same_first_line_is_a_new_file(
    site: Site, follower: Follower, header: bytes
) -> None:
    append(site.log, header + b"1 a\n")
    follower.poll()
    site.log.rename(site.rotated(1))
    site.log.write_bytes(header + b"2 b\n3 c\n")
    follower.poll()
    follower.poll()
    first = header.rstrip(b"\n")
    assert site.lines() == [first, b"1 a", first, b"2 b", b"3 c"]


def test_a_header_alone_is_no_proof_of_being_the_same_file(site: Site) -> None:
    append(site.log, b"#Fields: date time\n")
    site.collect()
    append(site.log, b"1 a\n")
    site.log.rename(site.rotated(1))
    site.log.write_bytes(b"#Fields: date time\n2 b\n")
    site.collect()
    site.collect()
    header = b"#Fields: date time"
    assert site.lines() == [header, b"1 a", header, b"2 b"]


def test_a_line_being_written_is_not_torn_by_a_run_without_service(site: Site) -> None:
    with site.log.open("ab", buffering=0) as server:
        server.write(b"1 whole\n2 being wri")
        assert site.collect().unfinished_bytes == len(b"2 being wri")
        assert site.lines() == [b"1 whole"]
        server.write(b"tten\n")
        site.collect()
    assert site.lines() == [b"1 whole", b"2 being written"]


def test_the_last_line_of_an_idle_file_needs_no_line_feed(site: Site) -> None:
    site.log.write_bytes(b"1 whole\n2 without an end")
    site.collect()
    site.collect()
    assert site.lines() == [b"1 whole", b"2 without an end"]


def test_a_compressed_log_is_read_as_text(site: Site) -> None:
    site.log.write_bytes(gzip.compress(b"1 a\n2 b"))
    site.collect()
    site.collect()
    assert site.lines() == [b"1 a", b"2 b"]


def test_a_large_compressed_log_is_read_in_portions(site: Site) -> None:
    lines = [b"%d " % number + b"x" * 100 for number in range(30_000)]
    site.log.write_bytes(gzip.compress(b"\n".join(lines)))
    assert site.collect().lines == len(lines)
    assert site.lines() == lines


def test_a_rotated_file_that_is_compressed_while_followed_is_sent_once(
    site: Site, follower: Follower
) -> None:
    header = b"#Fields: date time\n"
    for number in range(1, 4):
        site.log.write_bytes(header + (b"%d a\n" % number if number != 2 else b""))
        follower.poll()
        site.log.rename(site.rotated(number))
        site.log.touch()
        follower.poll()
        compress(site.rotated(number))
        follower.poll()
    assert site.lines() == [header[:-1], b"1 a", header[:-1], header[:-1], b"3 a"]


def test_copy_and_truncate_is_read_on_in_the_copy(site: Site, follower: Follower) -> None:
    append(site.log, b"1 a\n")
    follower.poll()
    append(site.log, b"2 b\n")
    shutil.copyfile(site.log, site.rotated(1))
    follower.poll()
    append(site.log, b"3 c\n")
    shutil.copyfile(site.log, site.rotated(1))
    site.log.write_bytes(b"4 longer than the file was before it was truncated\n")
    follower.poll()
    follower.poll()
    assert site.lines() == [
        b"1 a",
        b"2 b",
        b"3 c",
        b"4 longer than the file was before it was truncated",
    ]


def test_files_that_were_rotated_before_the_first_run_are_passed_over(site: Site) -> None:
    site.rotated(2).write_bytes(gzip.compress(b"years ago\n"))
    site.rotated(1).write_bytes(b"yesterday\n")
    site.log.write_bytes(b"1 today\n")
    site.collect()
    site.rotated(2).rename(site.rotated(3))
    compress(site.rotated(1))
    site.log.rename(site.rotated(1))
    append(site.rotated(1), b"2 today\n")
    site.log.write_bytes(b"3 tomorrow\n")
    site.collect()
    assert site.lines() == [b"1 today", b"2 today", b"3 tomorrow"]


def test_a_log_that_is_copied_here_every_night_goes_on(site: Site) -> None:
    site.log.write_bytes(b"10:00:01 a\n")
    site.collect()
    copy = site.log.with_name("incoming")
    copy.write_bytes(b"10:00:01 a\n10:00:02 b\n")
    copy.rename(site.log)
    site.collect()
    assert site.lines() == [b"10:00:01 a", b"10:00:02 b"]


def test_a_file_keeps_to_the_partitions_that_the_topic_had(site: Site) -> None:
    """DL-1: else a line sent twice would lie in another partition, not recognised there."""
    grow(site, 2)
    lines = [b"10.0.0.%d x" % number for number in range(30)] + [b" without a visitor"] * 2
    append(site.log, b"".join(line + b"\n" for line in lines))
    registry = site.log.with_name("registry.json")
    site.collect()
    once = places(site, 2)
    assert {partition for _, partition in once} == {0, 1} and len(once) == len(lines)
    grow(site, 5)
    # As a crash leaves it, in which nothing was known to be acknowledged.
    known = json.loads(registry.read_text())
    known["files"][0] |= {"position": 0, "line": 1}
    registry.write_text(json.dumps(known))
    site.collect()
    assert sorted(places(site, 5)) == sorted(2 * once)
    site.log.rename(site.rotated(1))
    append(site.log, b"".join(line + b"\n" for line in [b"new", *lines]))
    site.collect()
    assert {partition for _, partition in places(site, 5)} == set(range(5))


def test_a_topic_that_was_made_again_with_fewer_partitions_takes_the_file_on(site: Site) -> None:
    grow(site, 3)
    append(site.log, b"".join(b"10.0.0.%d x\n" % number for number in range(20)))
    site.collect()
    delete(site.broker, site.topic)
    create(site.broker, site.topic)
    append(site.log, b"".join(b"10.0.1.%d x\n" % number for number in range(20)))
    site.collect()
    assert len(site.lines()) == 20
