"""The README's own commands on the machine that it names: python3, python3-venv, make (UX-1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.bare_debian import RELEASES, BareDebian
from tests.kit.processes.broker_process import free_port
from tests.kit.readme import Door, as_script, doors

pytestmark = pytest.mark.soak

_LONGEST_S = 3 * 3600.0
_DOOR_S = 1200.0
_NOT_NAMED = ("cc", "gcc", "java", "git", "curl")


@pytest.fixture(scope="module", params=RELEASES)
def debian(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BareDebian]:
    debian = BareDebian(tmp_path_factory.mktemp("debian") / "root", request.param)
    try:
        debian.build()
        debian.settle()
        yield debian
    finally:
        debian.remove()


# The build of a release counts too, for the first of its tests.
@pytest.mark.timeout(_DOOR_S + 1800)
@pytest.mark.parametrize("door", doors(), ids=lambda door: door.name)
def test_ux_8_a_door_opens_in_a_bare_debian(debian: BareDebian, tmp_path: Path, door: Door) -> None:
    assert not any(map(debian.has, _NOT_NAMED))
    log = tmp_path / "log"
    script, printed = as_script(door, free_port())
    status = debian.run(script, log, timeout_s=_DOOR_S)
    text = log.read_text(errors="replace")
    assert status == 0, text[-20_000:]
    assert re.fullmatch(printed, text), text[-20_000:]


@pytest.mark.timeout(_LONGEST_S + 1800)
@pytest.mark.parametrize("debian", RELEASES[:1], indirect=True)
@pytest.mark.parametrize("target", ["run", "test"])
def test_ux_1_the_readmes_commands_need_no_more_than_it_says(
    debian: BareDebian, tmp_path: Path, target: str
) -> None:
    assert not any(map(debian.has, _NOT_NAMED))
    log = tmp_path / "log"
    status = debian.run(f"make {target}", log, timeout_s=_LONGEST_S)
    assert status == 0, log.read_text(errors="replace")[-20_000:]
