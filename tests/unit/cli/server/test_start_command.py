"""UX-5: the arguments of `server start`, which are those of kafka-server-start.sh."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from barnabas.cli.server.start_command import (
    StartArguments,
    UsageError,
    parse,
    properties_of,
    start,
)

_MODULES_AT_START = 200


def test_arguments_in_any_order_and_the_later_wins() -> None:
    """UX-5."""
    arguments = parse(
        ["--override", "num.partitions=3", "server.properties", "--port=9192", "--data-dir", "/d",
         "--override=num.partitions=4"]
    )  # fmt: skip
    assert arguments.properties_file == "server.properties"
    assert arguments.settings == {"num.partitions": "4", "log.dirs": "/d"}
    assert arguments.port == 9192
    assert not arguments.wants_help


@pytest.mark.parametrize("word", ["--dir", "--data-dir"])
def test_ux_5_the_directory_has_the_name_that_other_commands_use(word: str) -> None:
    assert parse([word, "/d"]).settings == parse([f"{word}=/d"]).settings == {"log.dirs": "/d"}


def test_nothing_at_all_is_a_broker_with_defaults() -> None:
    assert parse([]) == StartArguments(None, {}, False)


DELAY = "group.initial.rebalance.delay.ms"


@pytest.mark.parametrize(
    ("words", "listeners", "delay"),
    [
        ([], "PLAINTEXT://127.0.0.1:9092", "0"),
        (["--port", "0"], "PLAINTEXT://127.0.0.1:0", "0"),
        (["--host", "0.0.0.0"], "PLAINTEXT://0.0.0.0:9092", "0"),
        (["--host=::", "--port=1"], "PLAINTEXT://[::]:1", "0"),
        (["--listeners", "PLAINTEXT://:9092"], "PLAINTEXT://:9092", "0"),
        (["--override", f"{DELAY}=7"], "PLAINTEXT://127.0.0.1:9092", "7"),
        # For a text about an old Kafka, the waits are Kafka's.
        (["--profile", "kafka-2.3"], "PLAINTEXT://127.0.0.1:9092", None),
        # Others have to reach these.
        (["--override", "zookeeper.connect=z:2181"], None, None),
        (["--override", "zookeeper.connect=z:2181", "--port=1"], "PLAINTEXT://:1", None),
        (["--override", "advertised.listeners=PLAINTEXT://a:1"], None, None),
        (["FILE"], None, None),
        (["FILE", "--port", "1"], "PLAINTEXT://:1", None),
        (["FILE", "--port", "1", "--host", "10.0.0.1"], "PLAINTEXT://10.0.0.1:1", None),
    ],
)
def test_without_a_properties_file_a_broker_is_for_its_machine(
    words: list[str], listeners: str | None, delay: str | None, tmp_path: Path
) -> None:
    """UX-4: what is open to others is said in words; with a file, defaults are Kafka's."""
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    properties = properties_of(parse([str(file) if word == "FILE" else word for word in words]))
    assert properties.get("listeners") == listeners
    assert properties.get(DELAY) == delay


def test_the_environment_says_where_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LISTENERS", "PLAINTEXT://:9092")
    assert properties_of(parse([]))["listeners"] == "PLAINTEXT://:9092"
    assert properties_of(parse(["--port=1"]))["listeners"] == "PLAINTEXT://127.0.0.1:1"


def test_tk_4_faults_over_http_are_off_unless_asked_for() -> None:
    assert parse([]).test_control_port is None
    assert parse(["--test-control", "9099"]).test_control_port == 9099
    with pytest.raises(UsageError, match="--test-control 99999: not a port"):
        parse(["--test-control=99999"])


def test_the_form_of_the_log_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(["--log-format=json"]).settings == {"barnabas.log.format": "json"}
    monkeypatch.setenv("KAFKA_BARNABAS_LOG_FORMAT", "json")
    assert properties_of(parse([]))["barnabas.log.format"] == "json"
    assert start(["--log-format", "xml"]) == 1
    assert "barnabas.log.format" in capsys.readouterr().err


def test_daemon_stands_where_kafka_has_it() -> None:
    """UX-5: `kafka-server-start.sh -daemon server.properties`."""
    assert parse(["-daemon", "server.properties"]) == StartArguments(
        "server.properties", {}, False, as_daemon=True
    )


def test_a_daemon_without_a_place_for_its_log_says_how_to_name_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """UX-4: the directory above the data belongs to the administrator of the machine, often."""
    (tmp_path / "data.log").mkdir()
    assert start(["-daemon", "--data-dir", str(tmp_path / "data")]) == 1
    assert capsys.readouterr().err == (
        f"barnabas server start: {tmp_path}/data.log: is a directory; name another file for the "
        "log by --log-file\n"
    )


def test_a_profile_is_told_from_settings() -> None:
    arguments = parse(["--profile", "kafka-2.3", "--override", "message.max.bytes=5"])
    assert arguments.profile == "kafka-2.3"
    assert arguments.settings == {"message.max.bytes": "5"}


def test_an_unknown_profile_is_one_line_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """UX-4."""
    # The unknown config keeps a broker from running here in any case.
    assert start(["--profile", "kafka-0.8", "--override", "no.such.config=1"]) == 1
    assert capsys.readouterr().err == (
        "barnabas server start: 'kafka-0.8' is not a profile; use kafka-2.3\n"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--port"], "--port needs a value"),
        (["--port", "many"], "--port many: not a port"),
        (["--port=70000"], "not a port, 0 to 65535"),
        (
            ["--port=1", "--override", "listeners=PLAINTEXT://:1"],
            "cannot be combined with listeners",
        ),
        (["--host="], "--host needs an address; 0.0.0.0 stands for all"),
        (["--host=a", "a.properties"], "--host with a properties file needs --port"),
        (["--override", "num.partitions"], "not KEY=VALUE"),
        (["--data-dir="], "--data-dir needs a directory"),
        (["a.properties", "b.properties"], "two properties files"),
        (["--verbose"], "no such option: --verbose"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """UX-4."""
    with pytest.raises(UsageError, match=problem):
        parse(words)
    assert start(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert problem in printed.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--override", "num.partition=3"], "num.partitions"),
        (["--override", "num.partitions=many"], "many"),
        (["no-such-file.properties"], "no-such-file.properties"),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_1(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """UX-3, UX-4: the nearest name, the value, the file."""
    assert start(words) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("barnabas server start: ")
    assert problem in printed.err


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert start(["--port", "1", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples:" in text and "server.properties" in text


def test_a_broker_starts_without_the_libraries_of_the_other_commands() -> None:
    """A broker is ready in a tenth of a second; click and rich alone would take half of that."""
    code = (
        "import sys; from barnabas.cli.main import main; main(['server', 'start', '--help']);"
        "sys.exit(bool({'click', 'rich', 'asyncio', 'barnabas.client'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_ready_broker_has_loaded_only_what_its_start_needs(tmp_path: Path) -> None:
    """Each module costs a broker's start a quarter of a millisecond, so their number has a limit.

    Before it is raised: can the new module be imported where it is first needed?
    `broker.main._load_ahead` loads what the first client needs, after the ready line.
    """
    code = (
        "import os, sys; from barnabas.cli.main import main\n"
        "class Output:\n"
        "    flush = staticmethod(lambda: None)\n"
        "    def write(self, line):\n"
        "        os.write(1, ' '.join([line.split()[1], *sys.modules]).encode())\n"
        "        os._exit(0)\n"
        "sys.stdout = Output()\n"
        "main(['server', 'start', '--port', '0', '--data-dir', sys.argv[1]])"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    state, *names = subprocess.check_output(run, text=True, stderr=subprocess.DEVNULL).split()
    assert state == "ready"
    own = [name for name in names if name.startswith("barnabas")]
    assert len(own) <= _MODULES_AT_START, own
    # Data, other brokers and clients need these, and an empty broker on its own has none of them.
    later = ("storage.log", "records", "replication.partition", "client", "broker.handlers")
    assert {f"barnabas.{name}" for name in later}.isdisjoint(own)
    assert {"random", "encodings.idna", "dataclasses"}.isdisjoint(names)
    # typing's classes are made slowly: decision 35.
    assert [name for name in own if _imports_typings_named_tuple(name)] == []


def _imports_typings_named_tuple(module: str) -> bool:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).read_text("utf-8")
    return re.search(r"^from typing import .*\bNamedTuple\b", text, re.MULTILINE) is not None


def test_a_broker_that_could_not_keep_a_promise_does_not_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """SE-6: one line, exit 1, and nothing on disk."""
    data = tmp_path / "data"
    setting = "create.topic.policy.class.name=com.example.Policy"
    assert start(["--data-dir", str(data), "--override", setting]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "create.topic.policy.class.name promises that a policy checks new topics" in err
    assert not data.exists()
