"""DescribeDelegationToken: a token's secret is for those who may use it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client import SyncAdmin
from barnabas.errors import DelegationTokenRequestNotAllowed
from tests.kit.broker.secured import Secured


def test_se_3_owners_and_renewers_see_tokens_and_others_need_permission(
    alice: SyncAdmin, bob: SyncAdmin, deny: Any
) -> None:
    shared = alice.create_delegation_token(renewers="bob")
    own = alice.create_delegation_token()
    assert shared in alice.describe_delegation_tokens() and own in bob.describe_delegation_tokens()
    deny("User:alice", shared.token_id, own.token_id)
    assert set(alice.describe_delegation_tokens("alice")) == {shared, own}
    assert bob.describe_delegation_tokens() == [shared]
    assert bob.describe_delegation_tokens("bob") == [shared]
    assert bob.describe_delegation_tokens("carol") == []
    assert bob.describe_delegation_tokens([]) == []


def test_se_3_nobody_in_particular_sees_none(secured: Secured) -> None:
    with (
        SyncAdmin(secured.open_servers) as admin,
        pytest.raises(DelegationTokenRequestNotAllowed),
    ):
        admin.describe_delegation_tokens()
