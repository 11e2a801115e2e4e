"""What is installed for development: from wheels alone, in versions that are written down."""

from __future__ import annotations

import platform
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.kit.foreign import CHECKOUT
from tests.tidy import constraints

KEY_HOLDERS = ("cryptography", "joserfc", "kazoo", "pure-sasl")
"""Our code gives these a private key or a password."""


def project() -> dict[str, list[str]]:
    """Each extra's requirements; the package's own are those of ''."""
    table = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return {"": table["dependencies"], **table["optional-dependencies"]}


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="only there does the tag of a wheel say whether it was compiled on this machine",
)
def test_ux_1_nothing_that_make_test_installs_needs_a_compiler() -> None:
    compiled = [
        name
        for name, each in sorted(constraints.installed().items())
        if any(
            line.startswith("Tag:") and "-linux_" in line
            for line in (each.read_text("WHEEL") or "").splitlines()
        )
    ]
    assert compiled == [], (
        f"pip compiled {compiled} here, so `make test` fails on a machine without a compiler: "
        "leave them out of the extra dev, and let their tests skip and say what to install"
    )


def test_what_holds_keys_has_an_upper_bound() -> None:
    needed = [Requirement(line) for lines in project().values() for line in lines]
    bounded = {each.name: any(bound.operator == "<" for bound in each.specifier) for each in needed}
    assert {name: bounded[name] for name in KEY_HOLDERS} == dict.fromkeys(KEY_HOLDERS, True)


def test_constraints_name_versions_and_no_place() -> None:
    lines = constraints.PATH.read_text().splitlines()
    assert [line for line in lines if "/" in line or "@" in line or line.startswith("-")] == []


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info[:2] != (3, 11),
    reason="another Python or system needs other packages than those that are written down",
)
def test_each_package_that_is_installed_has_its_constraint() -> None:
    """Names only: `pip install` here may have brought newer versions than the file has."""
    pinned = {line.partition("==")[0] for line in constraints.PATH.read_text().splitlines()[1:]}
    assert pinned == set(constraints.installed()), (
        "constraints.txt does not fit what is installed; once the suite has passed with that: "
        "python -m tests.tidy.constraints"
    )
