"""RenewDelegationToken: longer, up to the end, and by those alone who may."""

from __future__ import annotations

import pytest

from barnabas.client import SyncAdmin
from barnabas.errors import DelegationTokenNotFound, DelegationTokenOwnerMismatch


def test_se_3_a_token_is_renewed_by_owner_and_renewer(alice: SyncAdmin, bob: SyncAdmin) -> None:
    token = alice.create_delegation_token(renewers=["bob"], max_lifetime_ms=3_600_000)
    assert alice.renew_delegation_token(token.hmac, 10_000_000) == token.max_timestamp_ms
    assert bob.renew_delegation_token(token.hmac, 1000) < token.max_timestamp_ms
    own = alice.create_delegation_token()
    with pytest.raises(DelegationTokenOwnerMismatch):
        bob.renew_delegation_token(own.hmac)
    with pytest.raises(DelegationTokenNotFound):
        bob.renew_delegation_token(bytes(64))
