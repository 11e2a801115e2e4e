"""One stem per API, everywhere: a listing of each folder is the documentation of what we speak."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.api import APIS, Api
from tests.kit.foreign import CHECKOUT

MESSAGES = CHECKOUT / "src" / "barnabas" / "protocol" / "messages"
HANDLERS = CHECKOUT / "src" / "barnabas" / "broker" / "handlers"
TESTS = CHECKOUT / "tests" / "unit" / "broker" / "handlers"


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.stem)
def test_every_api_has_messages_a_handler_and_a_test(api: Api) -> None:
    wanted = [
        MESSAGES / f"{api.stem}.py",
        HANDLERS / f"{api.stem}.py",
        TESTS / f"test_{api.stem}.py",
    ]
    assert [path for path in wanted if not path.is_file()] == []


@pytest.mark.parametrize("folder", [MESSAGES, HANDLERS], ids=lambda folder: folder.name)
def test_nothing_but_apis_lives_in_the_folders_of_apis(folder: Path) -> None:
    stems = {api.stem for api in APIS.values()}
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} <= stems


def test_messages_are_called_after_their_api() -> None:
    for api in APIS.values():
        assert api.request.__name__ == f"{api.name}Request"
        assert api.response.__name__ == f"{api.name}Response"
