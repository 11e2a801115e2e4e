"""Which lines begin records: stack traces of five languages, in logs of many formats (LG-3)."""

from __future__ import annotations

import io
import time

import pytest

from barnabas_collector.record_reader import RecordReader
from barnabas_formats.catalogue import catalogue
from barnabas_formats.continuation import RecordStart
from barnabas_formats.user_formats import own_format

JAVA = """\
java.lang.IllegalStateException: no order
\tat shop.Checkout.pay(Checkout.java:41)
\tSuppressed: java.io.IOException: close
\t\tat shop.Client.close(Client.java:9)
\t... 3 more
Caused by: shop.PaymentDeclined: card, or
a second line of its message
\tat shop.Client.charge(Client.java:88)
\t... 12 more"""
PYTHON = """\
Traceback (most recent call last):
  File "/app/shop.py", line 3, in pay
    charge()
shop.errors.PaymentDeclined: card

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/shop.py", line 7, in pay
    raise OrderError("x") from None
OrderError

The above exception was the direct cause of the following exception:

  + Exception Group Traceback (most recent call last):
  |   File "/app/shop.py", line 9, in main
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: a
    +------------------------------------"""
GO = """\
goroutine 7 [running]:
main.(*Shop).pay(0xc000012345, {0x4b2f, 0x3})
\t/src/shop/main.go:41 +0x1d
created by main.main in goroutine 1
\t/src/shop/main.go:12 +0x85

goroutine 1 [select]:
main.main()
\t/src/shop/main.go:14 +0x99
exit status 2"""
NODE = """\
/app/index.js:5
    throw new Error('x')
    ^

Error: x
    at main (/app/index.js:5:9)
    at node:internal/main/run_main_module:23:47 {
  [cause]: TypeError: y
      at pay (/app/pay.js:1:2)
}

Node.js v20.11.0"""
DOTNET = """\
System.InvalidOperationException: no order
 ---> System.IO.IOException: broken
   at Shop.Client.Charge() in /src/Client.cs:line 88
   --- End of inner exception stack trace ---
   at Shop.Checkout.Pay()
--- End of stack trace from previous location ---
   at Shop.Program.Main()"""
TRACES = {"java": JAVA, "python": PYTHON, "go": GO, "node": NODE, "dotnet": DOTNET}
HEADS = [sample.line for of in catalogue("system") for sample in of.samples[:1]]
CRASHES = {
    "java": f'Exception in thread "main" {JAVA}',
    "go": f"panic: runtime error: index out of range [5] with length 3\n\n{GO}",
    "fatal": f"fatal error: all goroutines are asleep - deadlock!\n\n{GO}",
    "dotnet": f"Unhandled exception. {DOTNET}",
}


def records(*texts: str, rule: RecordStart | None = None) -> list[str]:
    data = "\n".join(texts).encode() + b"\n"
    reader = RecordReader(io.BytesIO(data), 0, 1, rule or RecordStart())
    lines = [line for portion in reader.portions() for line in portion] + reader.last()
    return [line.text.decode() for line in lines]


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
@pytest.mark.parametrize("head", [each for each in HEADS if not each.startswith('{"')])
def test_lg_3_a_trace_belongs_to_the_line_before(head: str, trace: str) -> None:
    assert records(head, f"{head}\n{trace}", head) == [head, f"{head}\n{trace}", head]


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_lg_3_a_crash_is_a_record_of_its_own(crash: str) -> None:
    assert records(HEADS[0], crash, HEADS[1]) == [HEADS[0], crash, HEADS[1]]


def test_lg_3_a_traceback_after_lines_of_no_format() -> None:
    assert records("one", "two", PYTHON, "three") == ["one", "two", PYTHON, "three"]


@pytest.mark.parametrize("first", HEADS)
def test_lg_3_a_first_line_of_a_format_always_begins_a_record(first: str) -> None:
    for other in HEADS:
        assert records(first, other) == [first, other]


@pytest.mark.parametrize(
    "more",
    [
        '{"order": 7}',
        "a=b c=d",
        "and a second line",
        "ERROR in line 7",
        "at once",
        "2026 was fine",
        "b: c",
    ],
)
def test_lg_3_a_part_of_a_message_is_no_record_of_another_format(more: str) -> None:
    first = "2026-03-10 10:00:00,123 ERROR [main] shop.Checkout: failed"
    assert records(first, more, first) == [f"{first}\n{more}", first]


def test_lg_3_a_message_of_net_in_the_lines_below() -> None:
    first = "info: Shop.Worker[7]\n      => Request:7\n      done\n      at last"
    crash = f"fail: Shop.Worker[7]\n      no\n      {DOTNET}"
    assert records(first, crash, "dbug: Shop.Worker[0]\n      x") == [
        first,
        crash,
        "dbug: Shop.Worker[0]\n      x",
    ]


def test_lg_3_javas_own_logging_writes_a_record_in_two_lines() -> None:
    first = "Nov 28, 2026 6:25:18 AM org.a.HostConfig deployDirectory"
    record = f"{first}\nINFO: a: b\njava.lang.Error: x\n\tat a.B.c(B.java:7)"
    assert records(record, f"{first}\r\nSEVERE: c\r", record) == [
        record,
        f"{first}\r\nSEVERE: c\r",
        record,
    ]
    other = "INFO:     Started server process [7]"
    assert records(other, other) == [other, other], "Uvicorn"


def test_lg_3_a_slow_query_is_a_record() -> None:
    """LG-3: of MySQL, of MariaDB, and of PHP-FPM, which leaves a line empty between two."""
    mysql = "# Time: 2026-03-10T10:00:00.5Z\n# User@Host: a[a] @ b []\n# Query_time: 2.0\nSELECT 1;"
    mariadb = mysql.replace("2026-03-10T10:00:00.5Z", "260310  9:00:00")
    assert records(mysql, mariadb, mysql) == [mysql, mariadb, mysql]
    php = "[27-Nov-2026 20:52:09]  [pool www] pid 7\nscript_filename = /a.php\n[0x0f] f() /a.php\n"
    assert records(php, php) == [php, php]


def test_lines_of_no_format_are_records_each() -> None:
    assert records("a note", "another", '{"a": 1}', "b=c") == [
        "a note",
        "another",
        '{"a": 1}',
        "b=c",
    ]


def test_lg_3_an_object_is_a_whole_record() -> None:
    line = '{"time":"2026-03-10T10:00:00Z","level":"INFO","msg":"x"}'
    assert records(line, "a note", line) == [line, "a note", line]


def test_lines_of_web_servers_are_records_each() -> None:
    line = '192.0.2.7 - - [10/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5'
    assert records(HEADS[0], line, line) == [HEADS[0], line, line]


def test_a_users_own_format() -> None:
    own = own_format("shop", pattern="at {time:%d.%m.%Y %H:%M:%S} {message}")
    line = "at 10.03.2026 10:00:00 x"
    assert records(line, "y", line, rule=RecordStart([own])) == [f"{line}\ny", line]


@pytest.mark.parametrize("text", ["a=" * 100_000, '{"' * 100_000, "a" * 200_000, "1 " * 100_000])
def test_ux_4_a_long_line_takes_no_long_time(text: str) -> None:
    """Quadratic work would take minutes of the processor."""
    began = time.process_time()
    assert len(records("x", text)) == 2
    assert time.process_time() - began < 20
