"""UX-6: `barnabas install-scripts` writes scripts of Kafka's names, and replaces nobody's files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.kafka.names import MODULES
from barnabas.cli.main import main


def test_every_tool_gets_a_script_that_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "new" / "bin"
    assert main(["install-scripts", str(directory)]) == 0
    said = capsys.readouterr().out
    assert f'export PATH="{directory}:$PATH"' in said
    names = {path.name for path in directory.iterdir()}
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
    assert "kafka-configs.sh is not a script of ours, and 1 more: nothing was written" in said
    assert "--force" in said
    assert len(list(tmp_path.iterdir())) == 3
    assert main(["install-scripts", str(tmp_path), "--force"]) == 0
    assert "barnabas" in foreign.read_text()
    assert elsewhere.read_text() == "precious"


def test_help_lists_kafkas_tools_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "kafka-" in line]
    assert [line.split()[0] for line in lines] == ["install-scripts", "kafka-*.sh"]
