"""What a host of repositories reads from this one: every target, tool and version in it exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.foreign import CHECKOUT

WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
PAGES = ("CONTRIBUTING.md", "docs/releasing.md", ".github/PULL_REQUEST_TEMPLATE.md")


def workflow(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((WORKFLOWS[0].parent / f"{name}.yml").read_text())
    return loaded


def test_the_python_versions_are_those_that_we_promise() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert workflow("checks")["jobs"]["quick"]["strategy"]["matrix"]["python"] == promised


@pytest.mark.parametrize(
    "file", [*WORKFLOWS, *(CHECKOUT / page for page in PAGES)], ids=lambda file: file.name
)
def test_every_target_of_make_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    named = re.findall(r"(?:run: |`|\$ |&& )make ((?:[a-z-]+(?: |\b))+)", text)
    assert {target for words in named for target in words.split()} <= TARGETS


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_job_may_read_alone_and_ends(file: Path) -> None:
    """Only what publishes proves who it is, and nothing writes."""
    loaded = workflow(file.stem)
    assert loaded["permissions"] == {"contents": "read"}
    for name, job in loaded["jobs"].items():
        assert job["timeout-minutes"] <= 180
        may = job.get("permissions", {})
        assert may == ({"id-token": "write"} if (file.stem, name) == ("publish", "publish") else {})


def test_hooks_run_what_make_installs() -> None:
    hooks = yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    commands = [hook["entry"].split()[0] for hook in hooks]
    assert {Path(command).name for command in commands} == {"ruff", "make", "python"}
    assert all(command == "make" or command.startswith(".venv/bin/") for command in commands)
