"""The pass over files: records as the collector sends them, and tables in memory (LG-5)."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas.errors import ConfigError
from barnabas_collector.headers import CUT, FIELDS, FILE, FILE_ID, HOST, LINE, POSITION
from barnabas_collector.line_cutter import MAX_LINE_BYTES
from barnabas_collector.record_reader import INDENTED, record_start
from barnabas_formats.catalogue import catalogue
from barnabas_pipeline.accounts import read_accounts, read_dead_letters
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.file_pass import MemoryView, Origin, batches, read_ahead, take_batch
from barnabas_pipeline.logs.definition import LOGS, SystemLogs

WEB = Origin("web-access")
HIT = b'192.0.2.%d - - [10/Oct/2025:13:55:%02d +0000] "GET /p%d HTTP/1.1" 200 5 "-" "Mozilla"'


def rows_of(*tables: pa.Table) -> list[dict[str, object]]:
    rows = pa.concat_tables(tables).to_pylist()
    return [{**row, "headers": [(h["key"], h["value"]) for h in row["headers"]]} for row in rows]


def test_lg_5_records_have_the_headers_of_the_collector(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    long = b"x" * (MAX_LINE_BYTES + 7)
    log.write_bytes(b"first line\r\n" + long + b"\n\nlast, unfinished")
    rows = rows_of(*batches([str(log)], WEB))
    assert [row["value"] for row in rows] == [
        b"first line\r",
        long[:MAX_LINE_BYTES],
        b"",
        b"last, unfinished",
    ]
    assert [row["key"] for row in rows] == [b"first", long[:256], None, b"last,"]
    assert [row["offset"] for row in rows] == [0, 1, 2, 3]
    names = [[name for name, _ in row["headers"]] for row in rows]  # type: ignore[attr-defined]
    of_each = [FILE, FILE_ID, POSITION, LINE]
    assert names == [of_each, [*of_each, CUT], of_each, of_each]
    found = [dict(row["headers"]) for row in rows]  # type: ignore[call-overload]
    assert {each[FILE] for each in found} == {str(log).encode()}
    assert [each[LINE] for each in found] == [b"1", b"2", b"3", b"4"]
    at = [0, 12, 12 + len(long) + 1, 12 + len(long) + 2]
    assert [int(each[POSITION]) for each in found] == at
    assert found[1][CUT] == b"%d" % len(long)


def test_lg_5_records_of_several_lines_with_the_host(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes(b"one\n\tat a\n\tat b\ntwo\n")
    origin = Origin("system-logs", "gate", record_start(INDENTED))
    rows = rows_of(*batches([str(log)], origin))
    assert [row["value"] for row in rows] == [b"one\n\tat a\n\tat b", b"two"]
    assert [dict(row["headers"])[HOST] for row in rows] == [b"gate"] * 2  # type: ignore[call-overload]


def test_lg_5_batches_are_as_large_as_the_jobs(tmp_path: Path) -> None:
    """LG-5: a batch ends by its number of records, and offsets go on from file to file."""
    paths = []
    for name in ("a", "b", "c"):
        path = tmp_path / name
        path.write_bytes(b"".join(b"%d\n" % at for at in range(6)))
        paths.append(str(path))
    found = list(batches(paths, WEB, most=7))
    assert [each.num_rows for each in found] == [7, 7, 4]
    assert [row["offset"] for row in rows_of(*found)] == [*range(18)]


def test_an_error_is_raised_where_its_batch_was_due() -> None:
    def three() -> Iterator[pa.Table]:
        yield pa.table({"number": [1]})
        yield pa.table({"number": [2]})
        raise ConfigError("cannot read it")

    found = read_ahead(three())
    assert [next(found)["number"].to_pylist(), next(found)["number"].to_pylist()] == [[1], [2]]
    with pytest.raises(ConfigError, match="cannot read it"):
        next(found)


def test_who_stops_early_leaves_no_thread_behind(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(b"1\n2\n3\n4\n5\n")
    found = read_ahead(batches([str(log)], WEB, most=1))
    assert next(found).num_rows == 1
    found.close()
    assert [each.name for each in threading.enumerate() if "read-ahead" in each.name] == []


def test_lg_5_a_line_that_is_not_utf8_counts_once(tmp_path: Path) -> None:
    """LG-5: a byte and its escape are two lines, and neither is lost, whatever the batches."""
    log = tmp_path / "access.log"
    hits = [HIT % (1, at, 1) for at in range(4)]
    hits[1] = hits[1].replace(b"/p1", b"/caf\xe9")
    hits[2] = hits[1].replace(b"\xe9", rb"\xe9")
    hits[3] = hits[3].replace(b"Mozilla", b"\xff\0")
    log.write_bytes(b"\n".join(hits) + b"\n")
    for most in (1, 2, 250_000):
        view = MemoryView(BEHAVIOUR)
        for batch in batches([str(log)], WEB, most=most):
            take_batch(Behaviour(), view, batch)
        accounts, _ = read_accounts(view)
        assert (accounts.read, accounts.valid, accounts.dead_letters) == (4, 3, 1)
        (letters,) = read_dead_letters(view)
        assert letters.reason == "control character"


W3C = b"""#Software: IIS
#Fields: date time c-ip cs-method cs-uri-stem sc-status
2026-03-10 10:00:00 192.0.2.1 GET /a 200
2026-03-10 10:00:01 192.0.2.2 GET /b 200
#Fields: time date cs-method cs-uri-stem c-ip sc-status
10:00:02 2026-03-10 GET /c 192.0.2.3 200
10:00:03 2026-03-10 GET /d 192.0.2.4 404 0
"""


def test_lg_1_a_file_is_read_by_its_directives(tmp_path: Path) -> None:
    """LG-1: a directive is in force until the next one or the end of the file, in any batch."""
    log, other = tmp_path / "u_ex1.log", tmp_path / "u_ex2.log"
    log.write_bytes(W3C)
    other.write_bytes(W3C.splitlines()[2])
    for most in (1, 3, 250_000):
        view = MemoryView(BEHAVIOUR)
        records = list(batches([str(log), str(other)], WEB, most=most))
        for batch in records:
            take_batch(Behaviour(), view, batch)
        accounts, _ = read_accounts(view)
        assert (accounts.read, accounts.valid, accounts.dead_letters) == (8, 6, 2)
        paths = view.frame("pages")["path"].to_list()
        assert sorted(paths) == ["/a", "/b", "/c"]
    headers = [dict(row["headers"]) for row in rows_of(*records)]  # type: ignore[call-overload]
    first, second = (W3C.splitlines()[at][9:] for at in (1, 4))
    wanted = [None, *[first] * 3, *[second] * 3, None]
    assert [each.get(FIELDS) for each in headers] == wanted


@pytest.mark.thorough
def test_lg_5_tables_do_not_depend_on_the_size_of_batches(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    hits = [HIT % (at % 5, at % 60, at % 7) for at in range(100)]
    log.write_bytes(b"\n".join([*hits[:50], b"nonsense", *hits[50:], b'"']) + b"\n")

    def contents(records: int) -> tuple[dict[str, Counter[str]], object, object]:
        view = MemoryView(BEHAVIOUR)
        for batch in batches([str(log)], WEB, most=records):
            take_batch(Behaviour(), view, batch)
        frames = {
            name: Counter(map(repr, view.frame(name).iter_rows())) for name in BEHAVIOUR.merged
        }
        return frames, read_accounts(view), read_dead_letters(view)

    whole, parts = contents(1_000), contents(3)
    assert whole == parts, "34 batches, whose parts are merged several times"
    accounts, _ = read_accounts_of(whole)
    assert accounts == (102, 100, 2, 0)
    letters = {each.reason: each for each in parts[2]}  # type: ignore[attr-defined]
    assert letters["not an access log line"].samples == [("access.log, line 51", "nonsense")]


def read_accounts_of(contents: tuple[object, object, object]) -> tuple[tuple[int, ...], object]:
    return contents[1]  # type: ignore[return-value]


def test_a_compressed_file(tmp_path: Path) -> None:
    log = tmp_path / "access.log.2.gz"
    log.write_bytes(gzip.compress(HIT % (1, 1, 1) + b"\n"))
    assert [row["value"] for row in rows_of(*batches([str(log)], WEB))] == [HIT % (1, 1, 1)]


def test_a_damaged_compressed_file_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "access.log.2.gz"
    whole = gzip.compress(b"".join(b"%d\n" % at for at in range(100_000)))
    log.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=f"cannot read {log}: "):
        list(batches([str(log)], WEB))


def test_without_a_line_there_is_no_batch(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    assert list(batches([str(tmp_path / "empty.log")], WEB)) == []
    view = MemoryView(BEHAVIOUR)
    assert view.newest_s is None and not view.reasons()
    assert view.some("dead_letters", 3, ["reason"], {"reason": "x"}) == []
    assert read_accounts(view)[0] == (0, 0, 0, 0)


def test_lg_5_entries_of_a_second_batch(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"2026-03-10 10:00:00,000 INFO a.b: no {n}\n" for n in range(30)))
    view = MemoryView(LOGS)
    for batch in batches([str(log)], Origin("system-logs", "gate"), most=10):
        take_batch(SystemLogs(catalogue("system")), view, batch)
    (first,) = view.some("entries", 1, ["message", "offset"], {"format": "log4j"})
    assert first == {"message": "no 0", "offset": 0}
    assert sum(view.frame("minutes")["lines"]) == 30
