"""The README's own commands on the machine that it names: python3, python3-venv, make (UX-1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.bare_debian import BareDebian

pytestmark = pytest.mark.soak

_LONGEST_S = 3 * 3600.0


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareDebian]:
    debian = BareDebian(tmp_path_factory.mktemp("debian") / "root")
    try:
        debian.build()
        debian.settle()
        yield debian
    finally:
        debian.remove()


@pytest.mark.timeout(_LONGEST_S + 600)
@pytest.mark.parametrize("target", ["run", "test"])
def test_ux_1_the_readmes_commands_need_no_more_than_it_says(
    debian: BareDebian, tmp_path: Path, target: str
) -> None:
    assert not any(map(debian.has, ("cc", "gcc", "java", "git", "curl")))
    log = tmp_path / "log"
    status = debian.run(f"make {target}", log, timeout_s=_LONGEST_S)
    assert status == 0, log.read_text(errors="replace")[-20_000:]
