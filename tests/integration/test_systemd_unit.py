"""deploy/systemd: what systemd reads is sound, and our command has what the unit calls."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.cli.server.start_command import parse, properties_of
from barnabas.config import BrokerConfig
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import COMMAND, broker_process

FOLDER = CHECKOUT / "deploy" / "systemd"
UNIT = FOLDER / "barnabas.service"
PROPERTIES = FOLDER / "server.properties"
INSTALLED_COMMAND = "/opt/barnabas/bin/barnabas"
INSTALLED_PROPERTIES = "/etc/barnabas/server.properties"


def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(UNIT.read_text())  # no directive stands twice, or this fails
    return unit["Service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """UX-8: it also looks whether the command is there, so the installed one stands for it."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(INSTALLED_COMMAND, str(COMMAND)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    # It warns about units of the machine, too.
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []
    assert done.returncode == 0, done.stderr


def test_the_command_line_is_one_that_the_broker_takes() -> None:
    command, *words = shlex.split(service()["ExecStart"])
    assert (command, words[:2]) == (INSTALLED_COMMAND, ["server", "start"])
    assert parse(words[2:]).properties_file == INSTALLED_PROPERTIES


def test_the_exit_code_that_is_not_tried_again_is_that_of_a_wrong_command_line() -> None:
    assert main(["server", "start", "--no-such-option"]) == int(
        service()["RestartPreventExitStatus"]
    )


def test_the_data_are_where_the_service_may_write() -> None:
    """Everything else is read-only to it."""
    assert service()["ProtectSystem"] == "strict"
    state = Path("/var/lib") / service()["StateDirectory"]
    config = BrokerConfig(properties_of(parse([str(PROPERTIES)])))
    assert [Path(each).parent for each in config.log_directories()] == [state]
    assert config.warnings == []


def test_settings_that_are_commented_out_exist() -> None:
    lines = re.findall(r"^#(\S+=\S+)$", PROPERTIES.read_text(), re.MULTILINE)
    assert len(lines) == 3
    BrokerConfig(dict(line.split("=", 1) for line in lines))


def test_a_broker_starts_with_the_sample_file(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        assert broker.stop() == 0
        broker.words = (str(PROPERTIES),)
        broker.start()
        assert broker.stop() == 0


def test_the_page_names_the_places_that_the_unit_has() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    files = [UNIT.name, PROPERTIES.name, "barnabas.sysusers"]
    assert [f"deploy/systemd/{name}" in page for name in files] == [True] * 3
    assert "/opt/barnabas" in page and INSTALLED_PROPERTIES in page
