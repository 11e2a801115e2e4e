"""`python -m barnabas_pipeline run --pipeline logs` as its users run it (SP-2, SP-4)."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client import SyncProducer
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.generator import write_logs
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.alert_receivers import web_receiver
from tests.pipeline.run_command import PATIENCE_S, Command, running_command

pytestmark = pytest.mark.slow

WRONG, RIGHT = "%m/%d/%Y", "%d/%m/%Y"
FORMAT = """
[[format]]
name = "ours"
pattern = "{time:DATE %H:%M:%S} {level} {component}: {message}"
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    with running_command(tmp_path / "out", tmp_path / "logs") as command:
        yield command


def accounts(out: Path) -> Accounts:
    return read_accounts(Snapshot(out / "tables", LOGS))[0]


def places(out: Path) -> Counter[tuple[object, ...]]:
    """Of every entry and dead letter: its partition and offset, or its file and line."""
    snapshot = Snapshot(out / "tables", LOGS)
    rows: Counter[tuple[object, ...]] = Counter()
    rows.update(snapshot.frame("entries").select("file_id", "line").iter_rows())
    rows.update(snapshot.frame("dead_letters").select("partition", "offset").iter_rows())
    return rows


def ended(command: Command, *options: str) -> str:
    output, errors = command.start("--pipeline", "logs", *options).communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 0, errors
    return output


@pytest.mark.soak
def test_sp_4_a_killed_run_continues_and_nothing_counts_twice(command: Command) -> None:
    """SP-4, SP-2: kill -9 in the middle of a batch; then more is written, a file is rotated, and
    every record is there once."""
    write_logs(command.log, 6_000, seed=3)
    process = command.start("--pipeline", "logs", "--batch", "900")
    second = command.out / "tables" / "templates" / "_delta_log" / f"{1:020}.json"
    command.until(second.exists)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    begun = accounts(command.out).read
    (command.log / "auth.log").rename(command.log / "auth.log.1")
    (command.log / "auth.log").write_bytes(b"Mar 12 19:00:00 gate sshd[1]: a new file\n")
    output = ended(command, "--batch", "900")
    found = places(command.out)
    assert begun < found.total() and set(found.values()) == {1}
    starts = sum(
        not line.startswith((b"\t", b"Caused", b"java."))
        for path in command.log.iterdir()
        for line in path.read_bytes().splitlines()
    )
    assert found.total() == starts
    assert f"in all      read {starts:,} = " in output
    page = (command.out / "report.html").read_text()
    assert "search.indexer" in page and "got in as git" in page
    assert "203.0.113.18" not in page and str(command.log) not in page


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_sp_4_a_run_that_is_killed_at_each_commit(command: Command) -> None:
    """SP-4, SP-3: at each table, the control table, and Spark's own, a batch later each time."""
    write_logs(command.log, 14_000, seed=9)
    for batch, name in enumerate([*LOGS.all, "control", None]):
        process = command.start("--pipeline", "logs", "--batch", "900")
        if name is None:
            commit = command.out / "checkpoint" / "commits" / str(batch)
        else:
            commit = command.out / "tables" / name / "_delta_log" / f"{batch:020}.json"
        command.until(commit.exists)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    ended(command, "--batch", "900")
    found = places(command.out)
    assert set(found.values()) == {1} and found.total() == accounts(command.out).read


def test_sp_2_dead_letters_are_sent_again_once_their_format_is_mended(command: Command) -> None:
    """SP-2: nothing is lost by a mistake in a pattern."""
    command.log.mkdir()
    lines = [f"{day}/03/2026 10:00:00 INFO a.B: day {day}" for day in range(10, 20)]
    (command.log / "ours.log").write_text("\n".join([*lines, "no format"]) + "\n")
    formats = command.out.parent / "formats.toml"
    formats.write_text(FORMAT.replace("DATE", WRONG))
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        where = ["--bootstrap-servers", servers, "--formats", str(formats)]
        ended(command, *where)
        assert accounts(command.out) == Accounts(11, 4, 7, 0)  # 10 to 12 are months, too
        # As a driver leaves it that dies when the tables have a batch and Spark has not noted it.
        for file in (command.out / "checkpoint" / "commits").glob("*0*"):
            file.unlink()
        ended(command, *where)
        assert accounts(command.out) == Accounts(11, 4, 7, 0)
        formats.write_text(FORMAT.replace("DATE", RIGHT))
        replay = ["dead-letters", "replay", "system-logs-dead-letters"]
        assert main([*replay, "--bootstrap-server", servers]) == 0
        output = ended(command, *where)
        assert "this run    read 7 = valid 7 + dead letters 0 + sent twice 0" in output
        assert main([*replay, "--bootstrap-server", servers]) == 0
        ended(command, *where)
    assert accounts(command.out) == Accounts(18, 11, 7, 0)
    entries = Snapshot(command.out / "tables", LOGS).frame("entries")
    assert Counter(entries["format"]) == {"ours": 10, "raw": 1}
    assert entries["message"].n_unique() == 11


@pytest.mark.soak  # test_run_command.py has the same for the other pipeline
def test_sp_4_a_service_follows_the_files_and_ends_on_sigterm(command: Command) -> None:
    """SP-4: the same job, continuously; the page grows with the logs."""
    write_logs(command.log, 1_000, seed=4)
    process = command.start("--pipeline", "logs", "--service")
    report = command.out / "report.html"
    command.until(lambda: report.exists() and accounts(command.out).read > 0)
    before = accounts(command.out).read
    with (command.log / "search.log").open("a") as file:
        file.write("2026-03-12 19:00:00,000 ERROR search.query the index is gone\n")
    (command.log / "new.log").write_text("<11>1 2026-03-12T19:00:01Z h app 7 - - failed\n")
    command.until(lambda: accounts(command.out).read == before + 2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    entries = Snapshot(command.out / "tables", LOGS).frame("entries")
    errors_of = entries.filter((entries["level"] == "ERROR") & (entries["format"] != "log4j"))
    assert errors_of["message"].sort().to_list() == ["failed", "the index is gone"]


def test_lg_4_an_alert_is_sent_once_though_the_service_is_killed(
    command: Command, tmp_path: Path
) -> None:
    """LG-4: firing from the service, resolved from the run after kill -9, each once."""
    rules = tmp_path / "rules.toml"
    command.log.mkdir()
    log = command.log / "search.log"
    with web_receiver() as receiver:
        rules.write_text(
            '[[alert]]\nname = "errors"\nkind = "rate"\nlevel = "ERROR"\nthreshold = 2\n'
            f'[sink.team]\nkind = "webhook"\nurl = "{receiver.url}"\n'
        )
        log.write_text("2026-03-12 19:00:00,000 ERROR search.query the index is gone\n" * 2)
        process = command.start("--pipeline", "logs", "--service", "--alerts", str(rules))
        command.until(lambda: bool(receiver.posts) and (command.out / "report.html").exists())
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        with log.open("a") as file:
            file.write("2026-03-12 19:30:00,000 INFO search.query it is back\n")
        output = ended(command, "--alerts", str(rules))
        assert "0 incidents firing, 1 notice sent" in output
    assert [each.body["status"] for each in receiver.posts] == ["firing", "resolved"]
    assert len({each.body["id"] for each in receiver.posts}) == 1
    assert receiver.posts[0].body["lines"][0]["text"].endswith("the index is gone")


def test_sp_2_what_others_collect_on_many_machines(command: Command, tmp_path: Path) -> None:
    """SP-2: files on one, syslog from another; nothing is collected where the job runs."""
    (tmp_path / "app.log").write_text("2026-03-12 10:00:00,000 ERROR [main] a.B: one\n\tat a.B\n")
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        where = ["--bootstrap-server", servers, "--topic", "system-logs"]
        rule = ["--record-start", "indented"]
        assert main(["collect", str(tmp_path / "app.log"), "--once", *rule, *where]) == 0
        with SyncProducer(servers) as producer:
            headers = [("host", b"relay"), ("syslog.from", b"192.0.2.7")]
            message = b"<11>1 2026-03-12T10:00:01Z app-7 app 7 - - two"
            producer.send("system-logs", message, headers=headers).result()
        output = ended(command, "--no-input", "--bootstrap-servers", servers)
    assert "read 2 = valid 2" in output
    entries = Snapshot(command.out / "tables", LOGS).frame("entries").sort("message")
    assert entries.select("host", "level", "message", "more").rows() == [
        (socket.gethostname(), "ERROR", "one", "\tat a.B"),
        ("app-7", "ERROR", "two", None),
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--formats", "missing.toml"], "missing.toml: No such file"),
        (["--input", "missing"], "missing: there is no such file or directory"),
        (["--no-input"], "--no-input needs --bootstrap-servers"),
    ],
)
def test_ux_4_what_cannot_be_is_said_at_once(
    command: Command, options: list[str], complaint: str
) -> None:
    command.log.mkdir()
    _, errors = command.start("--pipeline", "logs", *options).communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 1
    assert complaint in errors and "Traceback" not in errors


def test_lg_5_a_report_without_spark_has_the_same_rows(command: Command, tmp_path: Path) -> None:
    """LG-5: entries, counts, templates and logins; only what follows from the order or the time of
    arrival differs."""
    write_logs(command.log, 3_000, seed=7)
    (command.log / "notes.txt").unlink()  # lines without a time have that of their arrival
    ended(command)
    page, own = str(tmp_path / "page.html"), tmp_path / "own"
    assert main(["report", str(command.log), "--tables", str(own), "--out", page]) == 0
    mine, theirs = rows_anywhere(own), rows_anywhere(command.out / "tables")
    for name, rows in mine.items():
        assert rows, name
        # Two differences: pytest's own of thousands of rows takes an hour.
        assert not rows - theirs[name] and not theirs[name] - rows, name


def rows_anywhere(tables: Path) -> dict[str, Counter[str]]:
    arrival = ["topic", "partition", "offset", "received", "file_id", "number"]
    snapshot = Snapshot(tables, LOGS)
    frames = {name: snapshot.frame(name).drop(arrival, strict=False) for name in LOGS.all}
    frames["dead_letters"] = frames["dead_letters"].drop("key", "headers")
    return {name: Counter(map(repr, frame.iter_rows())) for name, frame in frames.items()}
