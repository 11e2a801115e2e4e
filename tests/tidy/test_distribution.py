"""What `make dist` builds has one source for each address, and begins with a test that runs."""

from __future__ import annotations

import ast
import datetime
import re
import subprocess
import tomllib

import pytest

from tests.kit.foreign import CHECKOUT
from tests.kit.readme import doors

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
HOST = "barnabas" + ".example"  # put together here, so that this file does not find itself
MAY_NAME_IT = {"pyproject.toml", "docs/releasing.md", ".github/workflows/publish.yml"}
"""The first defines it, the others keep it from being published."""


def test_the_readmes_first_test_imports_what_its_install_line_brings() -> None:
    """UX-8"""
    door, *_ = doors()
    clone, *packages = door.packages
    imported = {
        node.module.partition(".")[0]
        for node in ast.walk(ast.parse(door.blocks[0].text))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert clone == ".[test]"
    assert {name.replace("-", "_") for name in packages} == imported - {"barnabas"}


def test_one_place_defines_where_the_project_lives() -> None:
    assert all(url.startswith(PROJECT["urls"]["Source"]) for url in PROJECT["urls"].values())
    named = subprocess.run(
        ["git", "grep", "-lF", HOST], cwd=CHECKOUT, capture_output=True, text=True, timeout=60
    )
    if named.returncode > 1:
        pytest.skip("not a git checkout, so nothing says what belongs to it")
    assert set(named.stdout.split()) <= MAY_NAME_IT


def test_the_changelog_has_the_version_as_its_newest_release() -> None:
    text = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    versions = [heading.partition(" - ")[0] for heading in headings]
    assert versions[:2] == ["[Unreleased]", f"[{PROJECT['version']}]"]
    dates = [datetime.date.fromisoformat(heading.partition(" - ")[2]) for heading in headings[1:]]
    assert dates == sorted(dates, reverse=True)
