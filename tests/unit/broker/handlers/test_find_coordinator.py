"""FindCoordinator: there is none yet, said in the protocol's own words."""

from __future__ import annotations

import pytest

from barnabas.errors import CoordinatorNotAvailable
from barnabas.protocol.api import FIND_COORDINATOR
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.raw_client import RawClient


@pytest.mark.parametrize("version", range(FIND_COORDINATOR.max_version + 1))
def test_not_available_in_every_version(client: RawClient, version: int) -> None:
    if version < 4:
        answer = client.call(FIND_COORDINATOR, version, FindCoordinatorRequest(key="group"))
        assert answer.error_code == CoordinatorNotAvailable.code
        assert answer.node_id == -1
    else:
        request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
        answer = client.call(FIND_COORDINATOR, version, request)
        assert [each.key for each in answer.coordinators] == ["a", "b"]
        assert {each.error_code for each in answer.coordinators} == {CoordinatorNotAvailable.code}
