"""SP-3: `barnabas verify` says whether outputs hold every record of a topic once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas import Broker
from barnabas.cli.main import main
from barnabas.client import NewTopic, SyncAdmin, SyncProducer

RECORDS = 1_000
PARTITIONS = 2


class Setup:
    """A source with records of a transaction that ended, of one that was aborted, and plain ones;
    so in each partition there are offsets without a record."""

    def __init__(self, servers: str, tmp_path: Path) -> None:
        self.servers = servers
        self.table = tmp_path / "table"
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic(name, PARTITIONS) for name in ("source", "sink", "dead")])
        self.places: list[tuple[int, int, bytes]] = []
        with SyncProducer(servers, transactional_id="t") as producer:
            producer.init_transactions()
            for aborted in (False, True, False):
                producer.begin_transaction()
                sent = [
                    producer.send("source", f"{number}".encode(), partition=number % PARTITIONS)
                    for number in range(RECORDS // 2)
                ]
                if aborted:
                    producer.flush()
                    producer.abort_transaction()
                    continue
                producer.commit_transaction()
                self.places += [
                    (each.result().partition, each.result().offset, f"{number}".encode())
                    for number, each in enumerate(sent)
                ]

    def to_table(self, places: Sequence[tuple[int, int, bytes]], topic: str = "source") -> None:
        partitions, offsets, values = zip(*places, strict=True)
        columns = {
            "topic": [topic] * len(places),
            "partition": pa.array(partitions, pa.int32()),
            "offset": offsets,
            "value": pa.array([value.decode() for value in values]),
        }
        deltalake.write_deltalake(str(self.table), pa.table(columns), mode="append")

    def to_topic(self, places: Sequence[tuple[int, int, bytes]], name: str = "sink") -> None:
        with SyncProducer(self.servers) as producer:
            for partition, offset, value in places:
                headers = [
                    ("other", b"1"),
                    ("source.topic", b"source"),
                    ("source.partition", b"%d" % partition),
                    ("source.offset", b"%d" % offset),
                ]
                producer.send(name, value, headers=headers)

    def verify(self, *words: str) -> int:
        where = ["--bootstrap-server", self.servers]
        return main(["verify", "--source", "source", *words, *where])


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    with Broker() as broker:
        yield Setup(broker.bootstrap_servers, tmp_path)


def report(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_sp_3_a_table_that_holds_all_is_exact(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    setup.to_table(setup.places[:700])
    setup.to_table(setup.places[700:])
    assert setup.verify("--sink", str(setup.table)) == 0
    assert capfd.readouterr().out == (
        "1,000 records of source, 1,000 rows\nexact: every record has one row\n"
    )
    assert setup.verify("--sink", str(setup.table), "--columns", "partition,offset") == 0
    assert setup.verify("--sink", str(setup.table), "--by", "value") == 0


def test_sp_3_outputs_hold_it_together(setup: Setup, capfd: pytest.CaptureFixture[str]) -> None:
    """A table, and the dead letters."""
    setup.to_table(setup.places[:600])
    setup.to_topic(setup.places[600:], "dead")
    assert setup.verify("--sink", str(setup.table), "--sink", "dead") == 0
    capfd.readouterr()
    assert setup.verify("--sink", str(setup.table), "--json") == 1
    found = report(capfd)
    assert (found["lost"], found["doubled"], found["records"]) == (400, 0, 1_000)


def test_sp_3_what_is_lost_or_doubled_is_named(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    lost, twice = setup.places[10], setup.places[21]
    setup.to_topic([each for each in setup.places if each != lost] + [twice, twice])
    assert setup.verify("--sink", "sink") == 1
    out = capfd.readouterr().out.splitlines()
    assert out == [
        "1,000 records of source, 1,001 rows",
        f"lost: 1 record without a row (source-{lost[0]}@{lost[1]})",
        f"doubled: 1 record with more than one row (source-{twice[0]}@{twice[1]})",
        "NOT exact",
    ]
    assert setup.verify("--sink", "sink", "--json") == 1
    found = report(capfd)
    assert (found["lost"], found["doubled"], found["extraRows"], found["exact"]) == (1, 1, 2, False)


def test_sp_3_rows_of_aborted_records_are_found(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    exist = {each[:2] for each in setup.places}
    # The first gap begins with the marker of the transaction before.
    partition, offset = next((0, at + 1) for at in range(2 * RECORDS) if (0, at) not in exist)
    setup.to_topic([*setup.places, (partition, offset, b"of an aborted transaction")])
    assert setup.verify("--sink", "sink") == 1
    printed = capfd.readouterr().out
    assert "unfounded: 1 row without a record" in printed
    assert f"(source-0@{offset})" in printed
    assert setup.verify("--sink", "sink", "--compacted") == 0
    capfd.readouterr()
    # A job that reads them, too, has lost the others.
    assert setup.verify("--sink", "sink", "--isolation-level", "read_uncommitted", "--json") == 1
    found = report(capfd)
    assert (found["lost"], found["records"]) == (RECORDS // 2 - 1, RECORDS * 3 // 2)


def test_sp_3_rows_that_say_nothing_of_where_they_come_from_are_no_proof(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    setup.to_topic(setup.places)
    with SyncProducer(setup.servers) as producer:
        producer.send("sink", b"0")
        producer.send("sink", b"1", headers=[("source.offset", b"one")])
    assert setup.verify("--sink", "sink") == 1
    assert "unmarked: 2 rows that name no record" in capfd.readouterr().out
    assert setup.verify("--sink", "sink", "--headers", "a,b,c", "--json") == 1
    assert report(capfd)["unmarked"] == 1_002


def test_sp_3_values_are_compared_where_nothing_else_is(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each value is in the source twice."""
    values = [value for _, _, value in setup.places]
    with SyncProducer(setup.servers) as producer:
        for value in [*values[2:], b"5", b"nobody's"]:
            producer.send("sink", value)
    assert setup.verify("--sink", "sink", "--by", "value") == 1
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "1,000 records of source, 1,000 rows"
    assert out[1].startswith("lost: 2 records whose value is missing or occurs too rarely (")
    assert "'0' in source-0" in out[1] and "'1' in source-1" in out[1]
    assert out[2] == (
        "doubled: 1 distinct value that occurs more often than in the source ('5' in source-1)"
    )
    assert out[3].startswith(
        'unfounded: 1 row whose value no record of the source has ("nobody\'s"'
    )
    assert setup.verify("--sink", "sink", "--by", "key") == 0, "all keys are null"


def test_sp_3_what_comes_later_is_not_looked_at(
    setup: Setup, capfd: pytest.CaptureFixture[str]
) -> None:
    setup.to_table(setup.places)
    setup.to_table([(0, 100_000, b"of the future")])
    setup.to_table([(0, 0, b"")], topic="another")
    assert setup.verify("--sink", str(setup.table)) == 0
    out = capfd.readouterr().out
    assert "ignored: 1 row of records beyond the end that was read" in out
    assert "ignored: 1 row of other topics" in out
    # Of before the records there is nothing, and nothing is lost.
    assert setup.verify("--sink", str(setup.table), "--until", "2020-01-01", "--json") == 0
    assert report(capfd)["records"] == 0


def test_wrong_words_are_refused(setup: Setup, capfd: pytest.CaptureFixture[str]) -> None:
    setup.to_table(setup.places)
    table = ["--sink", str(setup.table)]
    for words, code, said in (
        ([*table, "--columns", "a"], 2, "TOPIC,PARTITION,OFFSET"),
        ([*table, "--until", "soon"], 2, "not an instant"),
        ([*table, "--until", "2026-01-01", "--by", "key"], 2, "--until needs --by offset"),
        ([*table, "--source", "b", "--columns", "p,o"], 2, "the topic has to be named"),
        ([], 2, "sink"),
        ([*table, "--columns", "partition,at"], 1, "has no column at"),
        ([*table, "--by", "value", "--value-column", "offset"], 1, "offset is int64"),
        (["--sink", "./nowhere"], 1, "nowhere"),
        (["--sink", "nowhere"], 1, "there is no topic 'nowhere'"),
    ):
        assert setup.verify(*words) == code, words
        assert said in capfd.readouterr().err
