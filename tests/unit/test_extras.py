"""Messages say how to install a library by the names of libraries."""

from __future__ import annotations

import shlex
import tomllib
from importlib.metadata import PackageNotFoundError

import pytest
from packaging.requirements import Requirement

from barnabas.extras import install_line
from tests.kit.foreign import CHECKOUT
from tests.tidy.source import sources

EXTRAS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("extra", ["test", "spark", "delta", "java", "security", "pipeline"])
def test_the_line_has_every_package_of_an_extra_and_none_of_ours(extra: str) -> None:
    words = shlex.split(install_line(extra))
    assert words[:2] == ["pip", "install"]
    found = {Requirement(word).name: Requirement(word).specifier for word in words[2:]}
    assert found == expected(extra)


def expected(extra: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in map(Requirement, EXTRAS[extra]):
        if each.name == "barnabas":
            found |= expected(*each.extras)
        else:
            found[each.name] = each.specifier
    return found


def test_the_line_of_some_packages_has_their_bounds() -> None:
    assert install_line("security", ["pure-sasl"]) == "pip install 'pure-sasl<0.7,>=0.6.2'"


def test_sources_without_their_metadata_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", missing)
    assert install_line("security") == "pip install '.[security]'"
    assert install_line("security", ["joserfc"]) == "pip install joserfc"


@pytest.mark.thorough
def test_no_message_or_page_installs_a_name_that_somebody_else_could_take() -> None:
    """UX-8: until an index has this project under a name of its own, `pip install barnabas` may
    bring anything."""
    written = {file.path: file.text for file in sources("src", "examples", "benchmarks")}
    for page in [CHECKOUT / "README.md", *CHECKOUT.glob("docs/**/*.md"), CHECKOUT / "Makefile"]:
        written[page.name] = page.read_text(encoding="utf-8")
    commands = ("pip install", "pip3 install", "uvx", "uv add", "uv pip install", "pipx install")
    found = [
        f"{name}: {line.strip()}"
        for name, text in written.items()
        for line in text.splitlines()
        for command in commands
        if line.partition(f"{command} ")[2].strip("`'\"").startswith("barnabas")
    ]
    assert found == []
