"""Implements the part of `Admin` that manages delegation tokens (KIP-48).

A token's id and HMAC serve as a SCRAM user name and password: a client with both acts as the
token's owner until the token expires (`tokenauth=true` in `sasl.jaas.config`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.errors import check
from barnabas.protocol.api import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_USER = "User"


class DelegationToken(NamedTuple):
    """A delegation token, including its secret."""

    token_id: str
    hmac: bytes
    owner: str  # "User:alice"
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    requester: str = ""  # the token's creator; empty if the broker does not return it

    @property
    def jaas_config(self) -> str:
        """The `sasl.jaas.config` of a client that authenticates with this token through SCRAM."""
        return (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{self.token_id}" password="{b64encode(self.hmac).decode()}" '
            'tokenauth="true";'
        )

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, of {self.owner})"


class TokenAdmin(AdminCalls):
    """Creates, renews, expires and lists delegation tokens."""

    async def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: str | Iterable[str] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """Create a token for clients to authenticate as `owner` (by default, this client's user).

        If `max_lifetime_ms` is -1, the token has the longest lifetime that the brokers allow.
        Raises DelegationTokenAuthDisabled, DelegationTokenRequestNotAllowed (this client is not
        authenticated, or has itself authenticated with a token) or
        DelegationTokenAuthorizationFailed.

            token = await admin.create_delegation_token(max_lifetime_ms=3_600_000)
            Producer(servers, sasl_jaas_config=token.jaas_config, **options)
        """
        users = _users(renewers, "renewers")
        request = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else _USER,
            owner_principal_name=None if owner is None else arguments.text(owner, "owner"),
            renewers=[CreatableRenewers(principal_type=_USER, principal_name=u) for u in users],
            max_lifetime_ms=arguments.whole_number(max_lifetime_ms, "max_lifetime_ms", least=-1),
        )
        # Make only one attempt. If the response is lost, the token's secret is lost as well, and
        # the token expires unused. Another attempt would create a second token.
        answer = await self._cluster.call_any(
            CREATE_DELEGATION_TOKEN, request, CreateDelegationTokenResponse
        )
        check(answer.error_code, "creating a delegation token")
        return DelegationToken(
            answer.token_id,
            bytes(answer.hmac),
            f"{answer.principal_type}:{answer.principal_name}",
            tuple(f"{_USER}:{user}" for user in users),
            answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms,
            answer.max_timestamp_ms,
            _principal(
                answer.token_requester_principal_type, answer.token_requester_principal_name
            ),
        )

    async def renew_delegation_token(self, hmac: bytes, renew_period_ms: int = -1) -> int:
        """Renew a token for a period (ms) starting now, and return the new expiry time (ms).

        If the period is -1, the brokers use their `delegation.token.expiry.time.ms`. Raises
        DelegationTokenNotFound, DelegationTokenOwnerMismatch or DelegationTokenExpired.
        """
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)

        async def attempt() -> RenewDelegationTokenResponse:
            answer = await self._cluster.call_any(
                RENEW_DELEGATION_TOKEN, request, RenewDelegationTokenResponse
            )
            check(answer.error_code, "renewing a delegation token")
            return answer

        return (await self._persist(attempt)).expiry_timestamp_ms

    async def expire_delegation_token(self, hmac: bytes, expiry_period_ms: int = -1) -> int:
        """Expire a token after a period (ms), or now if that is negative. Return the expiry time.

        Raises the same errors as `renew_delegation_token`.
        """
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_period_ms)
        answer = await self._cluster.call_any(
            EXPIRE_DELEGATION_TOKEN, request, ExpireDelegationTokenResponse
        )
        check(answer.error_code, "expiring a delegation token")
        return answer.expiry_timestamp_ms

    async def describe_delegation_tokens(
        self, owners: str | Iterable[str] | None = None
    ) -> list[DelegationToken]:
        """Return the tokens of `owners` (by default, all users) that this client's user may see."""
        users = None if owners is None else _users(owners, "owners")
        request = DescribeDelegationTokenRequest(
            owners=None
            if users is None
            else [
                DescribeDelegationTokenOwner(principal_type=_USER, principal_name=user)
                for user in users
            ]
        )

        async def attempt() -> DescribeDelegationTokenResponse:
            answer = await self._cluster.call_any(
                DESCRIBE_DELEGATION_TOKEN, request, DescribeDelegationTokenResponse
            )
            check(answer.error_code, "describing delegation tokens")
            return answer

        answer = await self._persist(attempt)
        return [
            DelegationToken(
                each.token_id,
                bytes(each.hmac),
                f"{each.principal_type}:{each.principal_name}",
                tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
                _principal(
                    each.token_requester_principal_type, each.token_requester_principal_name
                ),
            )
            for each in answer.tokens
        ]


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind else ""


def _users(given: str | Iterable[str], argument: str) -> Sequence[str]:
    several = [given] if isinstance(given, str) else arguments.several(given, argument)
    return [arguments.text(user, argument) for user in several]
