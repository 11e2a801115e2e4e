"""Profiles name clusters; the shell completes the names of topics, groups and profiles."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

Run = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker() as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1), NewTopic("order-lines", 1)])
            admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 0})
        yield running


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with profiles of its own, and nothing in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BARNABAS_BOOTSTRAP_SERVER", raising=False)
    monkeypatch.delenv("BARNABAS_PROFILE", raising=False)

    def run(line: str, code: int = 0) -> tuple[str, str]:
        capfd.readouterr()
        actual = main(line.split())
        output, errors = capfd.readouterr()
        assert actual == code, errors
        return output, errors

    return run


def test_a_profile_stands_for_addresses(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which wins: the option, --profile, the two variables, the profile in use."""
    nowhere = f"127.0.0.1:{free_port()}"
    topics = "__consumer_offsets\norder-lines\norders\n"
    run(f"profile add here --bootstrap-server {broker.bootstrap_servers}")
    run(f"profile add nowhere --bootstrap-server {nowhere}")
    assert run("topics list --profile here")[0] == topics
    assert nowhere in run("topics list --profile nowhere", code=1)[1]
    at = broker.bootstrap_servers
    assert run(f"topics list --profile nowhere --bootstrap-server {at}")[0] == topics
    run("profile use nowhere")
    assert nowhere in run("topics list", code=1)[1]
    monkeypatch.setenv("BARNABAS_PROFILE", "here")
    assert run("topics list")[0] == topics
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVER", nowhere)
    assert nowhere in run("topics list", code=1)[1]
    assert run("topics list --profile here")[0] == topics


def test_profiles_are_kept_shown_and_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.properties").write_text("request.timeout.ms=5000\n")
    added = run("profile add a --bootstrap-server x:1,y:2")[0]
    assert added == f"Added profile a to {tmp_path}/barnabas/profiles.json.\n"
    run(f"profile add b --bootstrap-server z:1 --command-config {tmp_path}/c.properties")
    run("profile use b")
    assert run("profile list")[0] == "  a\tx:1,y:2\n* b\tz:1\n"
    assert run("profile show")[0] == (
        f"bootstrap.servers=z:1\ncommand-config={tmp_path}/c.properties\n"
    )
    assert run("profile show a")[0] == "bootstrap.servers=x:1,y:2\n"
    assert "to replace it, use --replace" in run("profile add a --bootstrap-server q:1", code=1)[1]
    run("profile add a --bootstrap-server q:1 --replace")
    run("profile delete b")
    assert run("profile list")[0] == "  a\tq:1\n"
    run("profile use --none")
    assert "no profile is in use" in run("profile show", code=2)[1]


@pytest.mark.parametrize(
    ("line", "code", "problem"),
    [
        ("topics list --profile her", 2, "--profile her: there is no such profile; did you mean"),
        ("profile remove gone", 1, "profile gone: there is no such profile; the profiles are here"),
        ("profile add x --bootstrap-server nothing", 2, "'nothing' is not HOST:PORT"),
        ("profile add a/b --bootstrap-server a:1", 2, "is not a valid profile name"),
        ("profile add x", 2, "--bootstrap-server"),
        ("profile add x --bootstrap-server a:1 --command-config /none", 2, "/none"),
        ("profile use", 2, "name a profile, or --none"),
    ],
)
def test_ux_4_what_is_refused(run: Run, line: str, code: int, problem: str) -> None:
    run("profile add here --bootstrap-server a:1")
    errors = run(line, code)[1]
    assert problem in errors and errors.count("\n") == 1


def test_a_command_config_is_for_every_client(run: Run, broker: Broker, tmp_path: Path) -> None:
    """What is for all clients is used, what is for some is left out, what is false is refused."""
    file = tmp_path / "client.properties"
    file.write_text("client.id=cli\nacks=all\nrequest.timeout.ms=soon\n")
    line = f"topics list --bootstrap-server {broker.bootstrap_servers} --command-config {file}"
    assert "request.timeout.ms: 'soon' is not a whole number" in run(line, code=2)[1]
    file.write_text("client.id=cli\nacks=all\nrequest.timeout.ms=5000\n")
    assert run(line)[0].endswith("order-lines\norders\n")
    assert run(line)[1] == "", "what only some clients have is no mistake"
    file.write_text("client.id=cli\nrequest.timeout=5000\n")
    output, warnings = run(line)
    assert output.endswith("order-lines\norders\n")
    hint = "request.timeout is not a client config and has no effect; did you mean request.timeo"
    assert f"topics list: warning: {file}: {hint}" in warnings and warnings.count("\n") == 1
    for tool in ("kafka-topics.sh --list", "kafka-consumer-groups.sh --list"):
        _, warnings = run(line.replace("topics list", tool, 1))
        assert f"--command-config: warning: {file}: {hint}" in warnings, tool
        assert warnings.count("\n") == 1
    file.write_text("security.protocol=SALS_SSL\n")
    assert f"{file}: security.protocol: 'SALS_SSL' is not one of" in run(line, code=2)[1]
    file.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    assert run(f"topics list --command-config {file}")[0].endswith("order-lines\norders\n")
    file.write_text("sasl.jaas.config=hush\n")
    assert "has no authentication" in run(line, code=2)[1]
    file.write_text("request.timeout.ms=soon\n")
    run(f"profile add p --bootstrap-server a:1 --command-config {file}")
    assert "'soon' is not a whole number" in run("topics list --profile p", code=2)[1]


def complete(words: str, environment: dict[str, str]) -> list[str]:
    """The completions that bash gets for the last of the words."""
    done = subprocess.run(
        [COMMAND],
        env=os.environ
        | environment
        | {
            "_BARNABAS_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        },
        capture_output=True,
        timeout=60,
    )
    assert done.stderr == b""
    return [line.partition(",")[2] for line in done.stdout.decode().splitlines() if line]


def test_a_shell_completes_names(broker: Broker, run: Run, tmp_path: Path) -> None:
    run(f"profile add here --bootstrap-server {broker.bootstrap_servers}")
    here = {
        "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap_servers,
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    assert complete("barnabas topics descri", here) == ["describe"]
    assert complete("barnabas topics describe order", here) == ["order-lines", "orders"]
    assert complete("barnabas consume --topic orders", here) == ["orders"]
    assert complete("barnabas groups describe re", here) == ["readers"]
    assert complete("barnabas topics list --profile he", here) == ["here"]
    nowhere = {**here, "BARNABAS_BOOTSTRAP_SERVER": f"127.0.0.1:{free_port()}"}
    assert complete("barnabas topics describe order", nowhere) == []
    assert complete("barnabas topics describe --profile here order", nowhere) == [
        "order-lines",
        "orders",
    ]
