"""UX-6: `barnabas install-scripts` writes scripts of Kafka's names, and replaces nobody's files."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from barnabas.cli.kafka.names import MODULES
from barnabas.cli.kafka.sample_configs import sample_configs
from barnabas.cli.main import main
from barnabas.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from barnabas.config import BROKER_KEYS
from barnabas.config.properties import parse_properties


def test_every_tool_gets_a_script_that_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "new" / "bin"
    assert main(["install-scripts", str(directory)]) == 0
    said = capsys.readouterr().out
    assert f'export PATH="{directory}:$PATH"' in said
    names = {path.name for path in directory.iterdir()}
    assert "config" not in names, "it is beside bin"
    assert {f"{name}.sh" for name in MODULES} < names
    assert {"kafka-run-class.sh", "kafka-simple-consumer-shell.sh"} < names
    script = directory / "kafka-topics.sh"
    assert os.access(script, os.X_OK)
    first, _, last = script.read_text().splitlines()
    assert first == "#!/bin/sh"
    assert last == f'exec {sys.executable} -P -m barnabas.cli.main kafka-topics.sh "$@"'
    monkeypatch.setenv("PATH", str(directory))
    assert main(["install-scripts", str(directory)]) == 0, "its own are replaced"
    assert "export" not in capsys.readouterr().out


def test_a_foreign_file_is_replaced_only_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "kafka-topics.sh"
    foreign.write_text("#!/bin/sh\nexec real-kafka\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / "kafka-configs.sh").symlink_to(elsewhere)
    assert main(["install-scripts", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "kafka-configs.sh is not one of our scripts, and 1 more: nothing was written" in said
    assert "--force" in said
    assert len(list(tmp_path.iterdir())) == 3, "neither scripts nor config"
    assert main(["install-scripts", str(tmp_path), "--force"]) == 0
    assert "barnabas" in foreign.read_text()
    assert elsewhere.read_text() == "precious"


def test_ux_5_config_files_are_written_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "server.properties").write_text("broker.id=7\n")
    assert main(["install-scripts", str(tmp_path / "bin"), "--force"]) == 0
    said = capsys.readouterr().out
    assert f"Left {config}/server.properties unchanged.\n" in said
    assert (
        f"Wrote zookeeper.properties, producer.properties, consumer.properties into {config}.\n"
        in said
    )
    assert (config / "server.properties").read_text() == "broker.id=7\n"
    assert main(["install-scripts", str(tmp_path / "elsewhere")]) == 0
    assert (tmp_path / "elsewhere" / "config" / "server.properties").exists()


def test_ux_5_the_config_files_have_settings_that_are_known() -> None:
    """Those that are commented out as well, which have their defaults."""
    texts = sample_configs(Path("/k/config"), Path("/k/data"))
    server = texts["server.properties"]
    values = parse_properties(re.sub(r"^#(?! )", "", server, flags=re.MULTILINE))
    assert len(values) > 15
    assert set(values) <= set(BROKER_KEYS)
    assert values["log.dirs"] == "/k/data/broker"
    defaults = parse_properties("\n".join(re.findall(r"^#(\S+=.*)", server, re.MULTILINE)))
    for name in defaults.keys() - {"advertised.listeners", "zookeeper.connect"}:
        expected = BROKER_KEYS[name].default
        assert expected is None or defaults[name] == str(expected), name
    for name, fields in (
        ("producer", {*ProducerConfig._fields, *ClientConfig._fields}),
        ("consumer", {*ConsumerConfig._fields, *ClientConfig._fields}),
    ):
        text = re.sub(r"^#(?! )", "", texts[f"{name}.properties"], flags=re.MULTILINE)
        for key in parse_properties(text).keys() - {"bootstrap.servers"}:
            assert key.replace(".", "_") in fields, key


def test_help_lists_kafkas_tools_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "kafka-" in line]
    assert [line.split()[0] for line in lines] == ["install-scripts", "kafka-*.sh"]
