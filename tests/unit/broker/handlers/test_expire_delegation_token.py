"""ExpireDelegationToken: at once or later."""

from __future__ import annotations

import pytest

from barnabas.client import SyncAdmin
from barnabas.errors import DelegationTokenNotFound, DelegationTokenOwnerMismatch


def test_se_3_a_token_is_ended_by_those_who_may(alice: SyncAdmin, bob: SyncAdmin) -> None:
    token = alice.create_delegation_token()
    with pytest.raises(DelegationTokenOwnerMismatch):
        bob.expire_delegation_token(token.hmac)
    assert alice.expire_delegation_token(token.hmac, 60_000) <= token.expiry_timestamp_ms
    alice.expire_delegation_token(token.hmac)
    with pytest.raises(DelegationTokenNotFound):
        alice.expire_delegation_token(token.hmac)
