"""UX-2: the forms of input that `barnabas produce` takes, and how it refuses what is malformed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.sync.producer import SyncAdmin
from tests.kit.processes.command_line import InProcess, Shell

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker(config={"log.retention.ms": "-1"}) as running:
        yield running


def records(barnabas: InProcess, topic: str) -> list[dict[str, Any]]:
    """All records, in the order of the log."""
    output = barnabas(f"consume {topic} --exit-at-end --json")[0]
    return [json.loads(line) for line in output.splitlines()]


def values(barnabas: InProcess, topic: str) -> list[Any]:
    return [each["value"] for each in records(barnabas, topic)]


@pytest.mark.parametrize(
    ("delimiter", "data", "expected"),
    [
        ("\\0", b"a\0b\r\n\0\0c", ["a", "b\r\n", "", "c"]),
        ("\\x1e", b"a\nb\x1ec\x1e", ["a\nb", "c"]),
        ("--\\n", b"one\n--\ntwo-\n--\n", ["one\n", "two-\n"]),
    ],
)
def test_ux_2_a_delimiter_ends_a_record(
    barnabas: InProcess, tmp_path: Path, delimiter: str, data: bytes, expected: list[str]
) -> None:
    (tmp_path / "input").write_bytes(data)
    topic = f"delimited-{len(delimiter)}-{len(data)}"
    barnabas(f"produce {topic} {tmp_path}/input --delimiter", delimiter)
    assert values(barnabas, topic) == expected


def test_ux_2_lines_of_json_are_whole_records(
    barnabas: InProcess, broker: Broker, tmp_path: Path
) -> None:
    """Every field; and what `consume --json` prints goes in again."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("json", 2), NewTopic("again", 2)])
    lines = [
        {"key": "k", "value": "v\n\u00e9", "partition": 1, "timestamp": 1_767_225_600_000},
        {"value": None, "key": {"base64": "/wA="}, "partition": 1},
        {"value": {"a": [1, 2]}, "headers": {"h": "1", "n": None}, "partition": 1},
        {"value": 7, "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": "2"}],
         "partition": 1, "timestamp": "2026-01-01T00:00:00Z"},
    ]  # fmt: skip
    (tmp_path / "a").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    barnabas(f"produce json {tmp_path}/a --format json --header all=x")
    first, second, third, fourth = records(barnabas, "json")
    every = {"key": "all", "value": "x"}
    assert (first["key"], first["value"], first["partition"]) == ("k", "v\n\u00e9", 1)
    assert first["timestamp"] == fourth["timestamp"] == 1_767_225_600_000
    assert (second["key"], second["value"]) == ({"base64": "/wA="}, None)
    assert json.loads(third["value"]) == {"a": [1, 2]}
    assert third["headers"] == [every, {"key": "h", "value": "1"}, {"key": "n", "value": None}]
    assert fourth["headers"][1:] == [{"key": "h", "value": "1"}, {"key": "h", "value": "2"}]
    (tmp_path / "b").write_text(barnabas("consume json --exit-at-end --json")[0])
    barnabas(f"produce again {tmp_path}/b --format json")
    assert [{**each, "topic": "json"} for each in records(barnabas, "again")] == [
        first, second, third, fourth,
    ]  # fmt: skip


def test_ux_2_a_whole_file_is_one_record(barnabas: InProcess, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"a\nb\0\r\n")
    (tmp_path / "two").write_bytes(b"")
    errors = barnabas(f"produce whole {tmp_path}/one {tmp_path}/two --format file")[1]
    assert errors.startswith("2 records (6 bytes) to whole in ")
    assert values(barnabas, "whole") == ["a\nb\0\r\n", ""]
    (tmp_path / "large").write_bytes(bytes(2_000_000))
    errors = barnabas(f"produce whole --format file {tmp_path}/large", code=1)[1]
    assert "/large: value: a record of 2000" in errors and "max.request.size" in errors


def test_pr_7_many_lines_are_one_transaction(barnabas: InProcess, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"".join(b"%d\n" % number for number in range(5_000)))
    barnabas(f"produce tx {tmp_path}/lines --transactional-id t")
    line = "consume tx --exit-at-end --isolation-level read_committed"
    assert barnabas(line)[0].splitlines() == [str(number) for number in range(5_000)]


def test_ux_2_several_files_and_nulls(barnabas: InProcess, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"k:v\nk:NULL\n")
    (tmp_path / "two").write_bytes(b"NULL:v")
    options = f"--topic nulls {tmp_path}/one --file {tmp_path}/two --null-marker NULL"
    errors = barnabas(f"produce {options} --key-separator :")[1]
    assert errors.startswith("3 records (17 bytes) to nulls in ")
    assert [(each["key"], each["value"]) for each in records(barnabas, "nulls")] == [
        ("k", "v"), ("k", None), (None, "v"),
    ]  # fmt: skip
    (tmp_path / "last").write_bytes(b"x")
    assert barnabas(f"produce one {tmp_path}/last")[1].startswith("1 record (1 byte) to one in ")


@pytest.mark.parametrize(
    ("line", "options", "problem"),
    [
        ('{"value": 1', "--format json", "line 3 is not JSON: "),
        ('["v"]', "--format json", "line 3 is not a JSON object, such as"),
        ('{"vaule": 1}', "--format json", "line 3 has the unknown field 'vaule'; a record has"),
        ('{"key": {"base64": "%"}}', "--format json", "line 3: key"),
        ('{"partition": -1}', "--format json", "line 3: partition -1 is not a number from 0 on"),
        ('{"partition": 9}', "--format json", "line 3: topic 'bad-"),
        ('{"timestamp": "soon"}', "--format json", 'line 3: timestamp "soon" is not milli'),
        ('{"headers": "h"}', "--format json", 'line 3: headers "h" is not an object'),
        ("[" * 100_000, "--format json", "line 3 is not JSON: "),
        ("plain", "--key-separator :", "line 3 has no key separator ':': 'plain'"),
        ("a:" + "x" * 1_100_000, "--key-separator :", "line 3: value: a record of"),
    ],
)
def test_ux_4_a_malformed_line_is_named_with_its_file(
    barnabas: InProcess, tmp_path: Path, line: str, options: str, problem: str
) -> None:
    """What stands in front of it is sent."""
    good = '{"value": "a:1"}' if "json" in options else "a:1"
    (tmp_path / "lines").write_text(f"{good}\n{good}\n{line}\n{good}\n")
    topic = f"bad-{crc32(line.encode())}-{len(options)}"
    errors = barnabas(f"produce {topic} {tmp_path}/lines {options}", code=1)[1]
    assert f"{tmp_path}/lines: {problem}" in errors and errors.count("\n") == 1
    assert errors.endswith("; 2 records were acknowledged\n")
    assert len(values(barnabas, topic)) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--format json --key-separator :", "--format json: leave out --key-separator"),
        ("--format file --delimiter x", "leave out --delimiter"),
        ("--format xml", "xml"),
        ("--delimiter=", "--delimiter is empty"),
    ],
)
def test_ux_4_options_that_contradict_each_other(
    barnabas: InProcess, options: str, problem: str
) -> None:
    errors = barnabas(f"produce t {options}", code=2)[1]
    assert problem in errors and errors.count("\n") == 1


def test_ux_4_a_missing_file_ends_it_before_anything_is_sent(
    barnabas: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("a\n")
    errors = barnabas(f"produce missing {tmp_path}/there {tmp_path}/missing", code=1)[1]
    assert errors == f"barnabas: {tmp_path}/missing: no such file or directory\n"
    assert "missing\n" not in barnabas("topics list")[0]


def test_a_file_beside_standard_input(shell: Shell, barnabas: InProcess, tmp_path: Path) -> None:
    (tmp_path / "first").write_text("a\n")
    shell.run("produce", "both", str(tmp_path / "first"), "-", text=b"b\nc")
    assert values(barnabas, "both") == ["a", "b", "c"]


def test_many_lines_with_keys_go_where_their_keys_belong(
    barnabas: InProcess, broker: Broker, tmp_path: Path
) -> None:
    """PR-2: whole blocks at once as well as line by line; a line without its key ends it."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("keyed-lines", 3)])
    lines = [f"k{n % 50}:{n}" for n in range(3_000)]
    file = tmp_path / "lines"
    file.write_text("\n".join([*lines, "lost", "k0:never"]))
    told = "line 3001 has no key separator ':': 'lost'; 3,000 records were acknowledged"
    options = "--key-separator : --file"
    assert told in barnabas(f"produce keyed-lines {options}", str(file), code=1)[1]
    found = records(barnabas, "keyed-lines")
    for each in found:
        assert each["partition"] == partition_for_key(each["key"].encode(), 3)
    by_key = {key: [each["value"] for each in found if each["key"] == key] for key in ("k0", "k7")}
    assert by_key == {f"k{first}": [str(n) for n in range(first, 3_000, 50)] for first in (0, 7)}
    assert sorted(int(each["value"]) for each in found) == [*range(3_000)]
