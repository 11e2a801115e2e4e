"""Fetch of what is not in the page cache: a thread reads the disk; no other client waits for it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.errors import KafkaStorageError, OffsetOutOfRange
from barnabas.protocol.api import FETCH, METADATA, PRODUCE
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.storage.files import OsFile
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.loops import inside, log_of
from tests.kit.broker.produces import produce, produce_request
from tests.kit.broker.topics import create, with_configs
from tests.kit.raw_client import PATIENCE_S, RawClient, batch
from tests.kit.waiting import wait_until


class ColdFile(OsFile):
    """A file on a disk that is slow, or broken."""

    __slots__ = ("asked", "failure", "may_go_on", "probe_failure", "warmed", "warming")

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.warmed: list[tuple[int, int]] = []
        self.asked: list[int] = []  # by whom, as far as threads were free
        self.warming = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.failure: OSError | None = None
        self.probe_failure: OSError | None = None

    def is_cached(self, position: int, size: int) -> bool:
        if self.probe_failure is not None:
            raise self.probe_failure
        return (position, size) in self.warmed

    def warm(self, position: int, size: int) -> None:
        assert threading.current_thread().name != "barnabas-broker", "the loop would stand still"
        self.asked.append(threading.get_ident())
        self.warming.set()
        assert self.may_go_on.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        super().warm(position, size)
        self.warmed.append((position, size))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Broker]:
    """With a second log directory, to live on when the first one fails."""
    log_dirs = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Broker(config={"log.dirs": log_dirs}) as broker:
        yield broker


@pytest.fixture
def cold(node: Broker, client: RawClient) -> Iterator[ColdFile]:
    """The log of the topic `t`, which has one batch."""
    create(client, "t")
    client.call(PRODUCE, 9, produce_request("t", {0: batch(b"from the disk")}))

    def replace() -> ColdFile:
        segment = log_of(node).segments[-1]
        segment._file = ColdFile(os.dup(segment.open_file().fileno()))
        return segment._file

    file = inside(node, replace)
    yield file
    file.may_go_on.set()


def test_cold_bytes_are_read_by_a_thread_first(client: RawClient, cold: ColdFile) -> None:
    answer = only(client.call(FETCH, 11, fetch_request("t")))
    assert values(answer) == [b"from the disk"]
    assert cold.warmed == [(0, len(batch(b"from the disk")))]
    client.call(FETCH, 11, fetch_request("t"))
    assert len(cold.warmed) == 1, "warm bytes are sent at once"


def test_an_offset_out_of_range_is_not_looked_for_on_the_disk(
    client: RawClient, cold: ColdFile
) -> None:
    for max_bytes in (-1, 0, 1 << 20):
        asked = fetch_request("t", (1 << 63) - 1, partition_max_bytes=max_bytes)
        assert only(client.call(FETCH, 11, asked)).error_code == OffsetOutOfRange.code
    at_the_end = fetch_request("t", 1, partition_max_bytes=-1)
    assert only(client.call(FETCH, 11, at_the_end)).error_code == 0
    assert cold.asked == []


def test_st_10_without_a_descriptor_bytes_take_the_long_way(
    client: RawClient, cold: ColdFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sending files past the transport needs a descriptor more for each connection."""
    asked: list[int] = []

    def refuse(descriptor: int) -> int:
        asked.append(descriptor)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", refuse)
    assert values(only(client.call(FETCH, 11, fetch_request("t")))) == [b"from the disk"]
    assert asked
    monkeypatch.undo()
    assert values(only(client.call(FETCH, 11, fetch_request("t")))) == [b"from the disk"]


def test_pr_4_consumers_that_wait_for_the_disk_hold_up_no_flush(
    node: Broker, client: RawClient, cold: ColdFile
) -> None:
    """Nor do more of them than there are threads for."""
    with_configs(client, "safe", flush_messages="1")
    cold.may_go_on.clear()
    readers = [RawClient(node.bootstrap_servers) for _ in range(20)]
    try:
        for each in readers:
            each.send(FETCH, 11, fetch_request("t"))
        wait_until(lambda: len(set(cold.asked)) >= 6)
        assert produce(client, "safe", batch(b"a")).error_code == 0
        assert log_of(node, "safe").recovery_point == 1
    finally:
        cold.may_go_on.set()
        for each in readers:
            each.receive(FETCH, 11)
            each.close()


def test_no_client_waits_for_the_disk_of_another(
    node: Broker, client: RawClient, cold: ColdFile
) -> None:
    cold.may_go_on.clear()
    client.send(FETCH, 11, fetch_request("t"))
    assert cold.warming.wait(PATIENCE_S)
    with RawClient(node.bootstrap_servers) as other:
        assert other.call(METADATA, 9, MetadataRequest(topics=[])).brokers
        sent = produce_request("t", {0: batch(b"meanwhile")})
        assert other.call(PRODUCE, 9, sent).responses[0].partition_responses[0].error_code == 0
    cold.may_go_on.set()
    assert values(only(client.receive(FETCH, 11)[1])) == [b"from the disk"]


def test_st_10_a_disk_that_fails_meanwhile_is_an_error_in_the_answer(
    node: Broker, client: RawClient, cold: ColdFile
) -> None:
    log = log_of(node)
    cold.failure = OSError(errno.EIO, "Input/output error")
    answer = only(client.call(FETCH, 11, fetch_request("t")))
    assert (answer.error_code, bytes(answer.records)) == (KafkaStorageError.code, b"")
    assert log.health.is_failed, "the directory went offline with it"
    again = only(client.call(FETCH, 11, fetch_request("t")))
    assert again.error_code == KafkaStorageError.code
    wait_until(lambda: cold._holders == 0)


def test_too_many_open_files_are_no_fault_of_the_disk(
    node: Broker, client: RawClient, cold: ColdFile
) -> None:
    cold.failure = OSError(errno.EMFILE, "Too many open files")
    assert only(client.call(FETCH, 11, fetch_request("t"))).error_code == KafkaStorageError.code
    cold.failure = None
    assert values(only(client.call(FETCH, 11, fetch_request("t")))) == [b"from the disk"]
    assert not log_of(node).health.is_failed


def test_what_cannot_even_be_asked_about_is_left_to_the_thread(
    client: RawClient, cold: ColdFile
) -> None:
    cold.probe_failure = OSError(errno.EIO, "Input/output error")
    assert values(only(client.call(FETCH, 11, fetch_request("t")))) == [b"from the disk"]
    assert cold.warmed, "the thread was asked, and the disk did not fail it"


@pytest.mark.parametrize("failure", [None, OSError(errno.EIO, "Input/output error")])
def test_a_reader_that_leaves_does_not_close_the_file_under_the_thread(
    node: Broker,
    cold: ColdFile,
    failure: OSError | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A closed descriptor's number is soon another file's."""
    held = cold._holders
    cold.may_go_on.clear()
    cold.failure = failure
    with RawClient(node.bootstrap_servers) as leaving:
        leaving.send(FETCH, 11, fetch_request("t"))
        assert cold.warming.wait(PATIENCE_S)
    router = node.server.parts.network.routers[0]
    wait_until(lambda: len(router._queues) <= 1)
    inside(node, lambda: None)
    assert cold._holders == held + 1, "the thread's"
    cold.may_go_on.set()
    wait_until(lambda: cold._holders == held)
    assert "never retrieved" not in caplog.text
