"""Log lines as columns: formats, levels, raw lines, and what is no line (SP-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format
from barnabas_formats.pattern import compile_pattern
from barnabas_pipeline.logs.log_lines import SCHEMA, parse_lines

RECEIVED_US = int(datetime(2026, 11, 24, tzinfo=UTC).timestamp() * 1e6)
KNOWN = catalogue("system")


def parsed(
    *values: bytes | None, cut: bool = False, formats: tuple[Format, ...] = KNOWN
) -> list[dict[str, Any]]:
    count = len(values)
    rows = parse_lines(
        pl.Series(values, dtype=pl.Binary),
        pl.Series([cut] * count, dtype=pl.Boolean),
        pl.Series([RECEIVED_US] * count, dtype=pl.Int64),
        formats,
    )
    assert rows.schema == SCHEMA
    return rows.to_dicts()


@pytest.mark.parametrize(
    ("line", "format_name", "component", "level", "message"),
    [
        (
            "081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 terminating",
            *("hdfs", "dfs.DataNode$PacketResponder", "INFO", "PacketResponder 1 terminating"),
        ),
        (
            "Dec 10 06:55:46 LabSZ sshd[24200]: Invalid user webmaster from 173.234.31.186",
            *("syslog", "sshd", None, "Invalid user webmaster from 173.234.31.186"),
        ),
        (
            "Jun 14 15:16:01 combo sshd(pam_unix)[19939]: authentication failure; rhost=x",
            *("syslog", "sshd(pam_unix)", None, "authentication failure; rhost=x"),
        ),
        (
            "Jun  9 06:06:01 combo kernel: floppy0: no drive found",
            *("syslog", "kernel", None, "floppy0: no drive found"),
        ),
        (
            "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
            *("syslog", "su", "FATAL", "'su root' failed for lonvick on /dev/pts/8"),
        ),
        (
            '<165>1 2003-10-11T22:14:15.003Z host.example evntslog - ID47 [a b="c \\] d"][e] hello',
            *("syslog", "evntslog", "INFO", "hello"),
        ),
        (
            "<11>1 2003-10-11T22:14:15+02:00 host.example app 77 - - failed",
            *("syslog", "app", "ERROR", "failed"),
        ),
        (
            "2026-03-12T08:08:58.421+00:00 gate sshd[12024]: Failed password for root from x",
            *("syslog", "sshd", None, "Failed password for root from x"),
        ),
        (
            "nova-api.log 2017-05-16 00:00:00.008 25746 INFO nova.osapi [req-1 - -] 1.2.3.4 GET",
            *("openstack", "nova.osapi", "INFO", "1.2.3.4 GET"),
        ),
        (
            "2017-05-16 00:00:04.500 2931 INFO nova.compute.manager [-] [instance: b9] VM Started",
            *("openstack", "nova.compute.manager", "INFO", "VM Started"),
        ),
        (
            "2015-07-29 17:41:44,747 - WARN  [SendWorker:1:QuorumCnxManager$SendWorker@688] - Bye",
            *("zookeeper", "QuorumCnxManager$SendWorker", "WARN", "Bye"),
        ),
        (
            "2015-10-18 18:01:47,978 INFO [main] org.apache.hadoop.MRAppMaster: Created it",
            *("log4j", "org.apache.hadoop.MRAppMaster", "INFO", "Created it"),
        ),
        (
            "17/06/09 20:10:40 INFO executor.Executor: Running task 0.0 in stage 0.0 (TID 0)",
            *("log4j", "executor.Executor", "INFO", "Running task 0.0 in stage 0.0 (TID 0)"),
        ),
        (
            "[2024-05-01 10:00:00,123] INFO [Log dir=/tmp] Loading (kafka.log.LogManager)",
            *("log4j", "kafka.log.LogManager", "INFO", "Loading"),
        ),
        (
            "2026-03-12 09:59:52,424 WARNING search.query slow query: 7 ms",
            *("python", "search.query", "WARN", "slow query: 7 ms"),
        ),
        (
            "[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok",
            *("apache", None, "INFO", "workerEnv.init() ok"),
        ),
        # ---- RFC 5424 ----
        ("<165>1 2003-10-11T22:14:15.003Z h app 87 ID47 -", "syslog", "app", "INFO", ""),
        ('<165>1 2003-10-11T22:14:15.003Z h app 87 - [a x="3"]', "syslog", "app", "INFO", ""),
        (
            "<165>1 2003-10-11T22:14:15Z h app 87 - - \ufeffAn event",
            "syslog",
            "app",
            "INFO",
            "An event",
        ),
        ("<133>1 - - - - - - a message", "syslog", None, "INFO", "a message"),
        ("<133>1 - - - - - -", "syslog", None, "INFO", ""),
        ("<11>1 2003-10-11T22:14:15Z h app su[7] - - failed", "syslog", "app", "ERROR", "failed"),
        ("<11>1 2016-12-31T23:59:60Z h app 1 - - leap", "syslog", "app", "ERROR", "leap"),
        # ---- RFC 3164 ----
        ("Feb 13 19:48:34 host app[1]:", "syslog", "app", None, ""),
        ("<13>Feb 13 19:48:34 2001:db8::1 root: hello", "syslog", "root", "INFO", "hello"),
        ("<13>Feb 13 19:48:34 su: root: no", "syslog", "su", "INFO", "root: no"),
        ("Feb 13 19:48:34 app[12]: no host: x", "syslog", "app", None, "no host: x"),
        (
            "Feb 13 19:48:34 host last message repeated 2 times",
            *("syslog", None, None, "last message repeated 2 times"),
        ),
        (
            "Feb 13 19:48:34 host no tag at all",
            "raw",
            None,
            None,
            "Feb 13 19:48:34 host no tag at all",
        ),
        # ---- Apache ----
        (
            "[Mon Jan 02 16:04:33.775458 2017] [authz_core:error] [pid 91974]"
            " [client 192.0.2.10:62256] AH01630: client denied",
            *("apache", "authz_core", "ERROR", "[client 192.0.2.10:62256] AH01630: client denied"),
        ),
        (
            "[Mon Jan 02 16:04:33.775458 2017] [mpm_event:notice] [pid 1:tid 140] AH00489: up",
            *("apache", "mpm_event", "INFO", "AH00489: up"),
        ),
        ("[Mon Jan 02 16:04:33.7 2017] [:error] [pid 7] PHP x", "apache", None, "ERROR", "PHP x"),
        ("[Mon Jan 02 16:04:33 2017] [ssl:trace4] [pid 7] x", "apache", "ssl", "TRACE", "x"),
        ("[Mon Jan 02 16:04:33 2017] [-:emerg] x", "apache", None, "FATAL", "x"),
        # ---- Python ----
        ("2025-06-04 10:06:56,506 - shop - WARNING - late", "python", "shop", "WARN", "late"),
        ("2025-06-04 10:06:56 - a.b - INFO - c - d", "python", "a.b", "INFO", "c - d"),
        ("2025-06-04 10:06:56,506 - INFO - late - or not", "python", None, "INFO", "late - or not"),
        ("2025-06-04 10:06:56,506 root         INFO     late", "python", "root", "INFO", "late"),
        ("2025-06-04 10:06:56,506 INFO Starting up", "python", None, "INFO", "Starting up"),
        ("2025-06-04 10:06:56,506 ERROR:Starting: up", "python", None, "ERROR", "Starting: up"),
        ("2025-06-04 10:06:56,506:ERROR:a.b:up", "python", "a.b", "ERROR", "up"),
        ("2025-06-04 10:06:56,506 [INFO] a.b: up", "python", "a.b", "INFO", "up"),
        ("2025-06-04 10:06:56,506 [INFO] Loading: up", "python", None, "INFO", "Loading: up"),
        (
            "[2025-06-04 10:06:56,506] ERROR in app: Exception",
            "python",
            "app",
            "ERROR",
            "Exception",
        ),
        ("[2025-06-04 10:06:56,506: INFO/MainProcess] up", "python", None, "INFO", "up"),
        ("[2025-06-04 10:06:56 +0000] [17] [INFO] Booting", "python", None, "INFO", "Booting"),
        ("WARNING:root:late", "python", "root", "WARN", "late"),
        ("Warning: root: late", "raw", None, None, "Warning: root: late"),
        # ---- ZooKeeper and Log4j ----
        (
            "2023-01-01 10:00:00,123 [myid:] - INFO  [main:o.a.z.s.Config@176] - Reading",
            *("zookeeper", "o.a.z.s.Config", "INFO", "Reading"),
        ),
        ("2015-10-18 18:01:47,978 [main] INFO  a.B - Bye", "log4j", "a.B", "INFO", "Bye"),
        (
            "2015-10-18 18:01:47,978 INFO  [main] a.B (B.java:c(1)) - Bye",
            "log4j",
            "a.B",
            "INFO",
            "Bye",
        ),
        ("no format has this", "raw", None, None, "no format has this"),
        ("", "raw", None, None, ""),
    ],
)
def test_sp_2_lines_of_known_formats(
    line: str, format_name: str, component: str | None, level: str | None, message: str
) -> None:
    (row,) = parsed(line.encode())
    found = (row["format"], row["component"], row["level"], row["message"])
    assert found == (format_name, component, level, message)
    assert row["reason"] is None


def test_more_lines_of_a_record() -> None:
    (row,) = parsed(b"2015-10-18 18:01:47,978 ERROR [main] a.B: failed\r\n  at x\n  at y")
    assert (row["message"], row["more"]) == ("failed", "  at x\n  at y")


def test_a_line_without_a_time_has_that_of_its_record() -> None:
    (row,) = parsed(b"no format has this")
    assert row["time_us"] == RECEIVED_US


@pytest.mark.parametrize(
    ("value", "cut", "reason"),
    [
        (None, False, "the record has no value"),
        (b"a", True, "the line is too long; only its beginning was sent"),
        (
            b"260231 101500 17 INFO a.B: c",
            False,
            "the line has an impossible time (hdfs)",
        ),
    ],
)
def test_sp_2_what_is_malformed_has_a_reason_and_nothing_else(
    value: bytes | None, cut: bool, reason: str
) -> None:
    (row,) = parsed(value, cut=cut)
    assert row.pop("reason") == reason
    assert set(row.values()) == {None}


@pytest.mark.parametrize(
    ("value", "format_name", "message", "more"),
    [
        (b"2026-03-10 10:00:00,000 INFO [main] a.B: caf\xe9", "log4j", r"caf\xe9", None),
        (b"\xff\xfe", "raw", r"\xff\xfe", None),
        (b"\xe2\x82\xac \xe2\x82\nat \x80", "raw", r"€ \xe2\x82", r"at \x80"),
        (b"a\0\xff", "raw", "a\0\\xff", None),
        (b'{"ts":"2026-03-10T10:00:00Z","level":"info","msg":"\xe9"}', "zap", r"\xe9", None),
        (b'time=2026-03-10T10:00:00Z level=info msg="\xe9 \\"" a=b', "logfmt", r'\xe9 "', None),
        (
            b"__CURSOR=s\n__REALTIME_TIMESTAMP=1773136800000000\nPRIORITY=6\nMESSAGE\n"
            b"\x03\0\0\0\0\0\0\0a\n\xff\nSYSLOG_IDENTIFIER=x",
            *("journald", "a\n\\xff", None),
        ),
        (
            b"__CURSOR=s\n__REALTIME_TIMESTAMP=1773136800000000\nPRIORITY=6\nMESSAGE\n"
            b"\x80\0\0\0\0\0\0\0" + b"m" * 128 + b"\nSYSLOG_IDENTIFIER=x",
            *("journald", "m" * 128, None),
        ),
    ],
)
def test_lg_1_a_byte_that_is_not_utf8_is_written_as_an_escape(
    value: bytes, format_name: str, message: str, more: str | None
) -> None:
    """LG-1: such a line has the columns of any other line, and so have its neighbours."""
    before, row, after = parsed(b"\xc3\xa9", value, None)
    assert (row["format"], row["message"], row["more"]) == (format_name, message, more)
    assert row["reason"] is None
    assert before["message"] == "é"
    assert after["reason"] == "the record has no value"


def test_lg_1_only_a_level_below_is_joined_to_the_first_line_of_javas_logging() -> None:
    first = "Mar 10, 2026 1:02:03 PM org.a.B run"
    for more in ("x", "INFO:", "INFORMATION: x", " INFO: x"):
        (row,) = parsed(f"{first}\n{more}".encode())
        assert (row["format"], row["message"], row["more"]) == ("raw", first, more)
    good, bad, other = parsed(
        f"{first}\nINFO: x\ny".encode(),
        f"{first}\nSEVERE: x".replace("10,", "32,").encode(),
        f"{first} at night\nINFO: x".encode(),
    )
    assert (good["format"], good["message"], good["more"]) == ("tomcat", "x", "y")
    assert bad["reason"] == "the line has an impossible time (tomcat)"
    assert other["format"] == "raw"


def test_ones_own_format_comes_first() -> None:
    own = Format(
        "ours", (compile_pattern("{time:%y%m%d %H%M%S} {pid} {level} {component}: {message}"),)
    )
    (row,) = parsed(b"081109 203615 148 INFO a.B: c", formats=(own, *KNOWN))
    assert row["format"] == "ours"


@pytest.mark.thorough
@given(st.lists(st.one_of(st.none(), st.binary(max_size=80), st.text(max_size=80).map(str.encode))))
def test_ux_4_any_bytes_are_a_row(values: list[bytes | None]) -> None:
    rows = parsed(*values)
    assert len(rows) == len(values)
    for row in rows:
        assert (row["reason"] is None) == (row["message"] is not None)
        assert (row["reason"] is None) == (row["time_us"] is not None)
