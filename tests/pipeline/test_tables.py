"""The pipeline's tables: a batch is in all of them or in none, once, wherever it was cut off."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncProducer, TopicPartition
from barnabas.errors import ConfigError
from barnabas.testing.embedded.broker import Broker
from barnabas_pipeline import tables as pipeline_tables
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.behaviour.lines import classify
from barnabas_pipeline.behaviour.sessions import derive
from barnabas_pipeline.dead_letter_topic import DeadLetterTopic
from barnabas_pipeline.one_pass import OnePass, outcome
from barnabas_pipeline.places import dead_letters
from barnabas_pipeline.tables import Tables
from pyspark_barnabas.delta.options import DeltaOptions
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.effort import rounds
from tests.kit.pipeline.delta_tables import age
from tests.kit.pipeline.table_batches import (
    ALL,
    HITS,
    QUERY,
    Doomed,
    Killed,
    contents,
    in_tasks,
    letters_in,
    send_nothing,
    snapshot_of,
    tables_in,
    taken,
    write,
)
from tests.kit.pipeline.topics import create
from tests.kit.pipeline.web_records import line, mixed, record, table

BATCHES = 3
OFTEN = 8  # batches from one compaction to the next

EMPTY = ("dead_letters", "referrers", "missing", "hosts", "response_times")
"""Tables to which ordinary lines add nothing."""


def die(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
    raise Killed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three batches, in one go."""
    directory = tmp_path_factory.mktemp("whole") / "tables"
    write(tables_in(directory), range(BATCHES))
    return directory


def test_sp_3_what_is_there_counts_once(whole: Path) -> None:
    """SP-3: what was sent twice is known by the state of the batch before."""
    snapshot = snapshot_of(whole)
    assert snapshot.control is not None and snapshot.control.batch == BATCHES - 1
    assert snapshot.frame("events").height == HITS * BATCHES
    assert snapshot.frame("dead_letters").height == 2 * BATCHES
    files = snapshot.frame("files").select("read", "valid", "dead_letters", "sent_twice")
    sent_twice = BATCHES + BATCHES - 1
    assert files.rows() == [(7 * BATCHES + sent_twice, 6 * BATCHES, BATCHES, sent_twice)] * 2


def test_sp_3_a_batch_that_is_cut_off_between_any_two_commits(tmp_path: Path, whole: Path) -> None:
    """SP-3: nothing of it is seen, and the next attempt ends as if there had been none."""
    expected = contents(whole)
    begun = tmp_path / "begun"
    write(tables_in(begun), range(BATCHES - 1))
    before = contents(begun)
    names = list(ALL)
    for committed in range(len(names) + 1):
        directory = tmp_path / f"cut-{committed}"
        shutil.copytree(begun, directory)
        tables = tables_in(directory)
        positions = tables.positions(tables.control())
        work = Behaviour().work(snapshot_of(directory))
        one_pass = OnePass(
            work, BEHAVIOUR.growing, BEHAVIOUR.merged, tables.growing_paths(), positions
        )
        found = outcome(BEHAVIOUR, in_tasks(mixed(BATCHES - 1), one_pass))
        for name in names[:committed]:
            tables.commit_to(name, BATCHES - 1, QUERY, found)
        assert contents(directory) == before, f"cut off behind {committed} commits"
        write(tables, [BATCHES - 1])
        assert contents(directory) == expected, f"taken again behind {committed} commits"
        write(tables, range(BATCHES))
        assert contents(directory) == expected, "and replayed when it is there"


def test_sp_3_small_files_are_merged_and_nothing_changes(tmp_path: Path, whole: Path) -> None:
    directory = tmp_path / "tables"
    shutil.copytree(whole, directory)
    tables = tables_in(directory)
    pinned = snapshot_of(directory)
    parts = deltalake.DeltaTable(str(directory / "pages")).to_pyarrow_table().num_rows
    tables.tidy()
    for name in ALL:
        assert len(deltalake.DeltaTable(str(directory / name)).file_uris()) <= 1
    merged_pages = deltalake.DeltaTable(str(directory / "pages")).to_pyarrow_table()
    assert merged_pages.num_rows < parts
    assert contents(directory) == contents(whole)
    write(tables, [BATCHES])  # its control row names the merged versions
    assert pinned.frame("events").height == HITS * BATCHES
    assert snapshot_of(directory).frame("events").height == HITS * (BATCHES + 1)


def test_others_read_the_tables(whole: Path) -> None:
    """Sums need no merging: any engine adds parts up."""
    traffic = deltalake.DeltaTable(str(whole / "traffic")).to_pyarrow_dataset()
    assert traffic is not None
    assert duckdb.sql("select sum(hits) from traffic").fetchall() == [(HITS * BATCHES,)]
    assert pl.read_delta(str(whole / "traffic"))["hits"].sum() == HITS * BATCHES


@pytest.mark.repeated
def test_a_process_that_reads_tables_ends_in_order(whole: Path) -> None:
    """And neither aborts nor hangs, which threads of Arrow's that go on reading made it do."""
    program = (
        "import sys; from pathlib import Path; from tests.kit.pipeline.table_batches import *;"
        " snapshot_of(Path(sys.argv[1]))"
    )
    for _ in range(rounds(3, in_soak=6)):
        done = subprocess.run(
            [sys.executable, "-c", program, str(whole)], capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_two_drivers_of_one_query(tmp_path: Path, whole: Path) -> None:
    """A copied checkpoint: both may end a batch, and neither doubles it."""
    directory = tmp_path / "tables"
    write(tables_in(directory), range(BATCHES - 1))
    slow, fast = tables_in(directory), tables_in(directory)

    def overtaken(one_pass: OnePass) -> Iterator[tuple[str, bytes]]:
        found = list(in_tasks(mixed(BATCHES - 1), one_pass))
        write(fast, [BATCHES - 1])
        return iter(found)

    taken(slow, BATCHES - 1, QUERY, overtaken, send_nothing)
    assert contents(directory) == contents(whole)


def test_one_line_of_another_year_costs_one_file_a_table(tmp_path: Path) -> None:
    """Not the days between."""
    tables = tables_in(tmp_path)
    for batch, day in enumerate(("17/May/2015", "01/Jan/1970", "31/Dec/2099")):
        rows = table([record(line(day=day), batch, position=batch)])
        taken(tables, batch, QUERY, lambda each, rows=rows: each.results(rows), send_nothing)  # type: ignore[misc]
    for name in ALL:
        files = deltalake.DeltaTable(str(tmp_path / name)).file_uris()
        assert len(files) == (0 if name in EMPTY else 3)
    snapshot = snapshot_of(tmp_path)
    assert snapshot.control is not None and snapshot.control.newest_s is not None
    sessions = derive(snapshot.frame("sessions"), snapshot.control.newest_s)
    assert sessions["open"].sum() == 1


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    tables = tables_in(tmp_path / "tables")
    tables.check_query(None)
    with pytest.raises(ConfigError, match="remove the output directory"):
        write(tables, [1])
    write(tables, [0])
    tables.check_query(QUERY)
    for other in ("another", None):
        with pytest.raises(ConfigError, match="do not belong together"):
            tables.check_query(other)
    for batch in (0, 1):  # it began when the tables were empty
        with pytest.raises(NotExactlyOnce, match="belong to query a-query; this is query another"):
            taken(tables, batch, "another", lambda each: in_tasks(mixed(1), each), send_nothing)
    old = tmp_path / "old"
    (old / "versions" / "000000").mkdir(parents=True)
    with pytest.raises(ConfigError, match="by an earlier version"):
        tables_in(old)


# ---- dead letters ----


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        create(running, "dead", 2)
        yield running


def bad(batch: int) -> pa.Table:
    first = 100 * batch
    return table([record(b"bad %d" % n, n, position=n) for n in range(first, first + 30)])


def test_dl_1_dead_letters_are_sent_once_wherever_a_batch_is_cut_off(
    broker: Broker, tmp_path: Path
) -> None:
    """DL-1, SP-3: before the transaction, in it, and when it is committed and not noted."""
    tables = tables_in(tmp_path)
    topic = DeadLetterTopic(broker.bootstrap_servers, "dead", QUERY)
    other = DeadLetterTopic(broker.bootstrap_servers, "dead", "another-query")

    def sent_and_died(letters: pa.Table, batch: int, **rest: object) -> dict[int, int]:
        topic.send(letters, batch, **rest)  # type: ignore[arg-type]
        raise Killed

    for batch, sends in enumerate(((die,), (sent_and_died,), (die, sent_and_died, sent_and_died))):
        rows = bad(batch)
        other.send(letters_of(rows), batch, since={})
        for send in sends:
            with pytest.raises(Killed):
                taken(tables, batch, QUERY, lambda each, rows=rows: each.results(rows), send)  # type: ignore[misc, arg-type]
        taken(tables, batch, QUERY, lambda each, rows=rows: each.results(rows), topic.send)  # type: ignore[misc]
    found = [
        each
        for each in letters_in(broker.bootstrap_servers, "dead", 2)
        if each[1]["query"] == QUERY.encode()
    ]
    assert len(found) == len({value for value, _ in found}) == 90
    value, headers = found[0]
    assert value == b"bad 0"
    assert headers == {
        "file": b"/logs/access.log",
        "file.id": b"access.log",
        "file.position": b"0",
        "file.line": b"1",
        "reason": b"not an access log line",
        "source.topic": b"web-access",
        "source.partition": b"0",
        "source.offset": b"0",
        "query": QUERY.encode(),
        "batch": b"0",
    }
    assert len(letters_in(broker.bootstrap_servers, "dead", 2)) == 180


def test_dl_1_two_drivers_send_a_batch_of_dead_letters_once(broker: Broker, tmp_path: Path) -> None:
    """DL-1: one only seemed dead. When it goes on, the other has ended the batch and sent all."""
    tables, rows = tables_in(tmp_path), bad(0)
    topic = DeadLetterTopic(broker.bootstrap_servers, "dead", QUERY)

    def overtaken(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
        taken(tables_in(tmp_path), batch, QUERY, lambda each: each.results(rows), topic.send)
        return topic.send(letters, batch, since=since)

    taken(tables, 0, QUERY, lambda each: each.results(rows), overtaken)
    assert len(letters_in(broker.bootstrap_servers, "dead", 2)) == 30


def test_dl_1_a_topic_that_was_cut_or_made_again_or_has_more_partitions(broker: Broker) -> None:
    """DL-1: where the topic ended before the batch is no place in it any more."""
    servers = broker.bootstrap_servers
    letters = letters_of(bad(0))
    with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
        for name, since in (("cut", {}), ("remade", {0: 500}), ("grown", {0: 0, 1: 0})):
            admin.create_topics([NewTopic(name, 1)])
            for number in range(5):
                producer.send(name, b"%d" % number).result()
            if name == "cut":
                admin.delete_records({TopicPartition(name, 0): 3})
            topic = DeadLetterTopic(servers, name, QUERY)
            topic.send(letters, 0, since=since)
            if name == "grown":
                admin.create_partitions(name, 3)
            topic.send(letters, 0, since=since)
            found = letters_in(servers, name, 3 if name == "grown" else 1)
            assert len([each for each in found if "query" in each[1]]) == 30, name


def test_dl_1_letters_behind_another_query_s_open_transaction_are_found(broker: Broker) -> None:
    """DL-1: readers of committed records do not see them yet, and the look waits until they do."""
    servers = broker.bootstrap_servers
    topic, letters = DeadLetterTopic(servers, "dead", QUERY), letters_of(bad(0))
    with SyncProducer(servers, transactional_id="another") as other:
        other.init_transactions()
        other.begin_transaction()
        for partition in range(2):
            other.send("dead", b"open", partition=partition).result()
        topic.send(letters, 0, since={})
        with ThreadPoolExecutor(1) as pool:
            again = pool.submit(topic.send, letters, 0, since={})
            assert not wait([again], 0.5).done, "the other transaction is open"
            other.commit_transaction()
            again.result(60)
    found = letters_in(servers, "dead", 2)
    assert len([each for each in found if "query" in each[1]]) == 30


def letters_of(rows: pa.Table) -> pa.Table:
    return dead_letters(classify(rows, {}), rows)


def test_sp_3_two_queries_that_begin_with_the_same_tables_are_distinguished(tmp_path: Path) -> None:
    tables = tables_in(tmp_path)

    def overtaken(one_pass: OnePass) -> Iterator[tuple[str, bytes]]:
        write(tables_in(tmp_path), [0])
        return in_tasks(mixed(0), one_pass)

    with pytest.raises(NotExactlyOnce, match="another query writes"):
        taken(tables, 0, "another", overtaken, send_nothing)
    assert snapshot_of(tmp_path).frame("events").height == HITS


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compactions that are due sooner."""
    monkeypatch.setattr(pipeline_tables, "_COMPACT_EVERY", OFTEN)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_sp_3_a_pipeline_that_has_not_run_for_long_keeps_its_tables(tmp_path: Path) -> None:
    """A vacuum of its tables takes away what a compaction has replaced, and no more."""
    tables = tables_in(tmp_path)
    write(tables, range(OFTEN))  # merges small files behind the last
    before = contents(tmp_path)
    gone: list[str] = []
    for name in ALL:
        table = deltalake.DeltaTable(str(tmp_path / name))
        gone += table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(gone) >= OFTEN
    assert contents(tmp_path) == before
    write(tables, [OFTEN])
    assert snapshot_of(tmp_path).frame("events").height == HITS * (OFTEN + 1)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_sp_3_logs_stay_short_and_what_the_control_table_names_stays_readable(
    tmp_path: Path,
) -> None:
    """SP-3: after days of service, and of one that died at the worst place and stood for a week."""
    tables = tables_in(tmp_path)
    last = 3 * OFTEN - 1  # the next compaction comes after it
    for first in (0, OFTEN):
        write(tables, range(first, first + OFTEN))
        age(tmp_path, 3)
    write(tables, range(2 * OFTEN, last))
    logs = [len(list((tmp_path / name / "_delta_log").glob("*.json"))) for name in ALL]
    assert max(logs) < last - 2, "those of the last hour behind a checkpoint, not all"
    age(tmp_path, 24 * 7)
    before = contents(tmp_path)
    with pytest.raises(Killed):
        write(Doomed(tmp_path, BEHAVIOUR), [last])
    assert contents(tmp_path) == before
    age(tmp_path, 24 * 7)
    assert contents(tmp_path) == before
    write(tables, range(last, last + 2))
    assert snapshot_of(tmp_path).frame("events").height == HITS * (last + 2)


def test_sp_3_two_drivers_take_batches_in_turns(tmp_path: Path) -> None:
    """SP-3: neither relies on the state that it has itself left."""
    expected, directory = tmp_path / "expected", tmp_path / "tables"
    write(tables_in(expected), range(8))
    one, other = tables_in(directory), tables_in(directory)
    write(one, range(3))
    write(other, range(5))
    write(one, range(3, 6))
    write(other, [6])
    write(one, [6, 7])
    assert contents(directory) == contents(expected)
    assert one.positions(one.control()) == tables_in(directory).positions(other.control())


class Late(Tables):
    """Whose first batch is none that is known."""

    def _options(self, name: str, batch: int | None = None) -> DeltaOptions:
        return super()._options(name, batch)._replace(begins=999_998)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_sp_3_a_number_past_any_padding(tmp_path: Path) -> None:
    """SP-3: batch 1,000,000 comes after batch 999,999, and so do all that follow."""
    tables = Late(tmp_path, BEHAVIOUR)
    work = Behaviour().work(None)
    one_pass = OnePass(work, BEHAVIOUR.growing, BEHAVIOUR.merged, tables.growing_paths(), {})
    tables.commit(999_998, QUERY, outcome(BEHAVIOUR, in_tasks(mixed(999_998), one_pass)))
    tables.conclude(999_998, QUERY, None, {})
    write(tables_in(tmp_path), range(999_999, 1_000_000 + 2 * OFTEN))
    snapshot = snapshot_of(tmp_path)
    assert snapshot.control is not None and snapshot.control.batch == 999_999 + 2 * OFTEN
    before_the_first = 2  # a line of each partition, which a batch before it would have had
    assert snapshot.frame("events").height == HITS * (2 * OFTEN + 2) + before_the_first


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_sp_3_readers_beside_writers_compactions_and_vacuums(tmp_path: Path) -> None:
    """Each reader sees one batch's state in all tables, also when others have replaced it since."""
    tables, last = tables_in(tmp_path), 2 * OFTEN
    write(tables, [0])
    is_over = threading.Event()

    def read() -> int:
        states = 0
        while not is_over.is_set():
            snapshot = snapshot_of(tmp_path)
            assert snapshot.control is not None
            tables.tidy()
            hits = HITS * (snapshot.control.batch + 1)
            assert snapshot.frame("events").height == hits
            for name, column in (("traffic", "hits"), ("files", "valid"), ("sessions", "hits")):
                assert snapshot.frame(name)[column].sum() == hits, name
            states += 1
        return states

    with ThreadPoolExecutor(2) as readers:
        reading = [readers.submit(read) for _ in range(2)]
        try:
            write(tables, range(1, last))
        finally:
            is_over.set()
        states = [each.result() for each in reading]
    assert min(states) > 0 and snapshot_of(tmp_path).frame("events").height == HITS * last
    print(f"{last} batches beside two readers that compacted: {states} states read")
