"""SP-2, UX-4: `barnabas collect` as its users run it, and what may happen to it."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.collect_processes import Collecting, collecting_in
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.journalctl import FakeJournal
from tests.kit.waiting import wait_until

MANY, FEW_DESCRIPTORS = 400, 300
TRACE = b"ERROR failed\n  at a\n  at b\n"


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    with collecting_in(tmp_path) as running:
        yield running


def test_lines_are_sent_as_they_are_written(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\ntwo\n")
    process = collecting.start(str(collecting.logs))
    wait_until(lambda: collecting.values() == [b"one", b"two"])
    with log.open("ab") as file:
        file.write(b"three\nfo")
    wait_until(lambda: len(collecting.values()) == 3)
    with log.open("ab") as file:
        file.write(b"ur\n")
    (collecting.logs / "later.log").write_bytes(b"\xff\x00 and what more there is\n")
    wait_until(lambda: len(collecting.values()) == 5)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 0
    assert "5 records (40 bytes) to lines in " in errors
    records = collecting.records()
    assert [record.value for record in records[:3]] == [b"one", b"two", b"three"]
    assert {record.value for record in records[3:]} == {b"four", b"\xff\x00 and what more there is"}
    headers = dict(records[2].headers)
    assert headers.pop("host") and headers.pop("file.id") == records[2].key
    assert headers == {"file": str(log).encode(), "file.position": b"8", "file.line": b"3"}
    assert "0 records" in collecting.once(str(collecting.logs)), "nothing is sent again"


def test_lg_1_the_columns_of_a_w3c_file_come_with_each_line(collecting: Collecting) -> None:
    """LG-1: also from a collector that was killed after the directive."""
    log = collecting.logs / "u_ex.log"
    log.write_bytes(b"#Version: 1.0\n#Fields: a b\n1 2\n#Fields: b a\n3 4\n")
    process = collecting.start(str(log))
    wait_until(lambda: len(collecting.values()) == 5)
    process.kill()
    process.communicate()
    with log.open("ab") as file:
        file.write(b"5 6\n")
    collecting.once(str(log))
    with log.open("ab") as file:
        file.write(b"#Fields: c\n7\n")
    collecting.once(str(log))
    records = collecting.records()
    assert [dict(record.headers).get("file.fields") for record in records] == [
        None,
        *[b"a b"] * 2,
        *[b"b a"] * 3,
        *[b"c"] * 2,
    ]
    assert [record.value for record in records] == log.read_bytes().splitlines()


def test_stack_traces_are_one_record(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"INFO fine\n" + TRACE)
    collecting.start(str(log), "--record-start", "indented")
    wait_until(lambda: collecting.values() == [b"INFO fine", TRACE.rstrip(b"\n")])
    with log.open("ab") as file:
        file.write(TRACE + b"INFO unfinis")
    wait_until(lambda: len(collecting.values()) == 3)
    collecting.kill_all()
    collecting.once(str(log), "--record-start", "indented")
    assert collecting.values()[2:] == [TRACE.rstrip(b"\n"), b"INFO unfinis"]


def test_lg_3_records_are_joined_by_the_formats_of_the_catalogue(collecting: Collecting) -> None:
    at = b"2026-03-10 10:00:00,123 ERROR [main] shop.Checkout: "
    failed = at + b"failed\nshop.Declined: card, or\na second line\n\tat shop.Run\nCaused by: x.Y"
    log = collecting.logs / "app.log"
    log.write_bytes(b"\n".join([at + b"fine", failed, b"panic: x\n\ngoroutine 1 [running]:", at]))
    collecting.once(str(log), "--record-start", "auto")
    assert collecting.values() == [
        at + b"fine",
        failed,
        b"panic: x\n\ngoroutine 1 [running]:",
        at,
    ]


def test_of_two_with_one_name_the_first_ends(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\n")
    first = collecting.start(str(log))
    wait_until(lambda: collecting.values() == [b"one"])
    collecting.start(str(log))
    with log.open("ab") as file:
        wait_until(lambda: (file.write(b"more\n") and file.flush()) or first.poll() is not None)
    _, errors = first.communicate()
    assert first.returncode == 1
    assert errors.endswith(
        "another collector named 'test' was started; give each collector its own name\n"
    )
    wait_until(lambda: len(collecting.values()) == log.read_bytes().count(b"\n"))


def test_of_two_with_one_name_the_first_ends_while_it_is_sending(collecting: Collecting) -> None:
    """Then what it sees is a batch that is refused; it must not take the name back."""
    log = collecting.logs / "app.log"
    log.write_bytes(b"%0.99d\n" % 0 * 1_000_000)
    first = collecting.start(str(log))
    wait_until(lambda: len(collecting.records(1)) == 1)
    first.send_signal(signal.SIGSTOP)
    sent = len(collecting.records())
    second = collecting.start(str(log))
    wait_until(lambda: len(collecting.records(sent + 1)) > sent)
    first.send_signal(signal.SIGCONT)
    _, errors = first.communicate()
    assert first.returncode == 1
    assert "another collector named 'test' was started" in errors
    assert second.poll() is None


def test_sp_2_a_broker_that_was_away(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\n")
    process = collecting.start(str(log))
    wait_until(lambda: collecting.values() == [b"one"])
    collecting.broker.stop()
    with log.open("ab") as file:
        file.write(b"two\n")
    collecting.broker.start()
    wait_until(lambda: collecting.values() == [b"one", b"two"])
    assert process.poll() is None


def test_a_directory_that_vanishes_and_comes_again(collecting: Collecting) -> None:
    inner = collecting.logs / "inner"
    inner.mkdir()
    (inner / "app.log").write_bytes(b"one\n")
    process = collecting.start(str(inner))
    wait_until(lambda: collecting.values() == [b"one"])
    shutil.rmtree(inner)
    inner.mkdir()
    (inner / "app.log").write_bytes(b"one\ntwo\n")
    wait_until(lambda: collecting.values() == [b"one", b"one", b"two"])
    assert process.poll() is None


def test_more_logs_than_descriptors(collecting: Collecting) -> None:
    for number in range(MANY):
        (collecting.logs / f"{number:04}.log").write_bytes(b"first of %d\n" % number)
    limit = (FEW_DESCRIPTORS, FEW_DESCRIPTORS)
    collecting.start(
        str(collecting.logs),
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )
    wait_until(lambda: len(collecting.values()) == MANY)
    for number in range(MANY):
        with (collecting.logs / f"{number:04}.log").open("ab") as file:
            file.write(b"second of %d\n" % number)
    wait_until(lambda: len(collecting.values()) == 2 * MANY)
    assert len(set(collecting.values())) == 2 * MANY


def test_a_line_that_is_too_long_is_cut_and_says_so(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"x" * 50_000_000 + b"\nnext\n")
    assert "; 1 were too long and were cut" in collecting.once(str(log))
    long, after = collecting.records()
    assert long.value == b"x" * 262_144 and dict(long.headers)["file.cut"] == b"50000000"
    assert after.value == b"next" and dict(after.headers)["file.position"] == b"50000001"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["missing.log"], "cannot read {here}/missing.log: there is no such file"),
        (["a.log", "--record-start", "("], "'(' is not a regular expression: missing )"),
        (["a.log", "--bootstrap-server", "127.0.0.1:1"], "is --bootstrap-server correct?"),
    ],
)
def test_what_cannot_be_is_one_clear_line_ux_4(
    collecting: Collecting, options: list[str], error: str
) -> None:
    (collecting.logs / "a.log").write_bytes(b"one\n")
    path = str(collecting.logs / options[0])
    if "--bootstrap-server" in options:
        command = [COMMAND, "collect", path, "--topic", "lines", "--once", *options[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1
        errors = done.stderr
    else:
        errors = collecting.once(path, *options[1:], code=1)
    assert error.format(here=collecting.logs) in errors.splitlines()[-1], errors


def test_lg_2_what_the_options_choose_and_where_they_start(collecting: Collecting) -> None:
    """With --from-end and after a restart, each line that was written since is sent once."""
    for name in ("app.log", "deep/er/inner.log", "deep/debug.log", "deep/notes.txt"):
        (collecting.logs / name).parent.mkdir(parents=True, exist_ok=True)
        (collecting.logs / name).write_bytes(b"old\n")
    options = [str(collecting.logs), "--recursive", "--include", "*.log", "--exclude", "debug*"]
    options += ["--from-end", "--ignore-older", "24h"]
    assert "0 records" in collecting.once(*options)
    for path in collecting.logs.rglob("*.*"):
        with path.open("ab") as file:
            file.write(path.name.encode() + b"\n")
    collecting.once(*options)
    assert sorted(collecting.values()) == [b"app.log", b"inner.log"]
    errors = collecting.once(str(collecting.logs), "--ignore-older", "a day", code=2)
    assert "'a day' is not a number followed by s, m, h or d, such as 24h" in errors


def test_lg_2_secrets_reach_no_topic(collecting: Collecting) -> None:
    """From files and from standard input, with rules of a file and of the command line."""
    pytest.importorskip("re2")
    log, rules = collecting.logs / "app.log", collecting.logs.parent / "rules.toml"
    log.write_bytes(b"login password=hunter2 card 1234567890123456\n")
    rules.write_text("[[redact]]\npattern = '\\b\\d{16}\\b'\nreplacement = '[card]'\n")
    options = [str(log), "--redact-rules", str(rules), "--redact", r"password\=\S+=password=***"]
    collecting.once(*options)
    with log.open("rb") as file:
        process = collecting.start("-", *options[1:], stdin=file)
        process.communicate()
    assert process.returncode == 0
    assert collecting.values() == [b"login password=*** card [card]"] * 2
    errors = collecting.once(str(log), "--redact", "(=x", code=1)
    assert errors.endswith("cannot redact by '(': missing ): (\n")


def test_lg_2_each_entry_of_the_journal_once(
    collecting: Collecting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the collector is killed: the cursor is in the transaction of the entries."""
    journal = FakeJournal(tmp_path / "bin")
    monkeypatch.setenv("PATH", journal.path)
    for number in range(3):
        journal.add(*(f"{number}-{at}" for at in range(200)))
        process = collecting.start("--journald", str(collecting.logs))
        wait_until(lambda number=number: len(collecting.values()) > number * 200)
        process.kill()
        process.communicate()
    (collecting.logs / "app.log").write_bytes(b"a line\n")
    journal.add("last")
    collecting.once("--journald")
    sent = [json.loads(value)["MESSAGE"] for value in collecting.values()]
    assert sent == [*(f"{number}-{at}" for number in range(3) for at in range(200)), "last"]
    collecting.once("--journald", str(collecting.logs))
    assert collecting.values()[-1] == b"a line" and len(collecting.values()) == 602
    journal.fail("No journal files were opened due to insufficient permissions.\n")
    errors = collecting.once("--journald", code=1)
    assert "journalctl failed (1): No journal files were opened" in errors


def test_lg_2_metrics_and_probes_of_a_collector(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\ntwo\n" + b"x" * 300_000 + b"\n")
    (collecting.logs / "tool").write_bytes(b"\x7fELF")
    process = collecting.start(str(collecting.logs), "--metrics-port", "0")
    assert process.stderr is not None
    port = int(process.stderr.readline().rpartition(":")[2])

    def page(path: str = "metrics") -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"

    def numbers() -> dict[str, float]:
        lines = [line for line in page().splitlines() if line[:1] != "#"]
        pairs = (line.removeprefix("barnabas_collector_").rsplit(" ", 1) for line in lines)
        return {name: float(number) for name, number in pairs}

    wait_until(lambda: numbers().get("lines_sent_total") == 3)
    assert page("readyz") == "ready\n" and page("healthz") == "ok\n"
    found = numbers()
    assert found["bytes_sent_total"] == found["bytes_read_total"] == 300_006
    assert found["lines_cut_total"] == found["ready"] == 1 and found["lag_bytes"] == 0
    assert found["files"] == 2 and found["files_open"] >= 1
    assert found['files_left_out{reason="binary"}'] == 1
    collecting.broker.stop()
    with log.open("ab") as file:
        file.write(b"three\n")
    wait_until(lambda: page("readyz").startswith("503 not ready: files and journal: "))
    wait_until(lambda: numbers()["retries_total"] >= 1)
    assert "last_error_timestamp_seconds{error=" in page()
    collecting.broker.start()
    wait_until(lambda: numbers()["lines_sent_total"] == 4)
    wait_until(lambda: page("readyz") == "ready\n")
    errors = collecting.once(str(log), "--metrics-port", str(port), code=1)
    assert f"--metrics-port: 127.0.0.1:{port}: cannot bind" in errors.splitlines()[-1]
