"""Manages delegation tokens, which are secrets that allow clients to authenticate as the token's
owner (KIP-48).

    HMAC-SHA-512(delegation.token.secret.key, token id)  = the secret, a password for SCRAM

Whenever a token is needed, it is read from the metadata tree. If a token is created, renewed or
expired on any broker, the change therefore takes effect on all brokers immediately. Tokens that
have expired are invalid, and are removed when the next token is created. To create a token, a
broker reads only the tokens that it has not read before.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import TYPE_CHECKING, Final

from barnabas.broker.runtime.slices import in_slices
from barnabas.broker.security.known_tokens import KnownTokens, decoded_token, read_tokens
from barnabas.cluster.loading import children
from barnabas.cluster.store import (
    BadVersion,
    Create,
    Delete,
    MetadataError,
    MetadataStore,
    NodeExists,
    NoNode,
    Operation,
    Set,
)
from barnabas.cluster.token_nodes import (
    BASE_PATHS,
    CHANGE_PREFIX,
    CHANGES,
    TOKENS,
    TokenNode,
    encode_token,
    token_path,
)
from barnabas.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    PolicyViolation,
    UnknownServerError,
)
from barnabas.security.acl import Principal
from barnabas.security.sasl import Identity
from barnabas.security.scram import ScramAccount, new_credential

if TYPE_CHECKING:
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.clock import Random
    from barnabas.config import BrokerConfig


_CHANGES_KEPT: Final = 1000
_ATTEMPTS: Final = 5  # to write a node that other brokers write as well
_KEYS: Final = ("delegation.token.secret.key", "delegation.token.master.key")


def token_key(config: BrokerConfig) -> bytes | None:
    """Return the key from which all secrets are derived, or None if delegation tokens
    are disabled.
    """
    # If both names are set, Kafka prefers the first, which is the newer one.
    return next((config.str(name).encode() for name in _KEYS if config.str(name)), None)


class DelegationTokens:
    """A cluster's tokens as one broker sees them. An instance is created for each request."""

    def __init__(
        self,
        store: MetadataStore,
        config: BrokerConfig,
        clock: WatchedClock,
        known: KnownTokens | None = None,
    ) -> None:
        """`known` contains the tokens that the broker has read so far, or is None if it has not
        read any.
        """
        self._known = KnownTokens() if known is None else known
        self._store = store
        self._config = config
        self._clock = clock
        self._key = token_key(config)

    def check_enabled(self) -> bytes:
        """Return the key for all tokens. Raises DelegationTokenAuthDisabled if there is none."""
        if self._key is None:
            raise DelegationTokenAuthDisabled(f"{_KEYS[0]} is not set on this broker")
        return self._key

    def secret(self, token_id: str) -> bytes:
        """Return the HMAC of a token, which is its secret."""
        return hmac_digest(self.check_enabled(), token_id.encode(), "sha512")

    # --- authentication --------------------------------------------------------------------------

    async def account(self, mechanism: str, token_id: str) -> ScramAccount | None:
        """Return the account to which a token belongs, or None if the token is invalid. Raises
        MetadataError.
        """
        # The id comes from an unauthenticated client and becomes part of a node's path.
        if self._key is None or "/" in token_id or not token_id:
            return None
        token = await self._read(token_id)
        if token is None or self._has_ended(token):
            return None
        password = b64encode(self.secret(token.token_id)).decode()
        # Use a thread, because thousands of hash iterations take several milliseconds.
        making = asyncio.get_running_loop().run_in_executor(
            None, new_credential, mechanism, password
        )
        identity = Identity(principal(token.owner), token.expires_at_ms, by_token=True)
        return ScramAccount(await making, identity)

    # --- requests --------------------------------------------------------------------------------

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Sequence[Principal],
        lifetime_ms: int,
        random: Random,
    ) -> TokenNode:
        """Create a token that is valid for at most `lifetime_ms`.

        If `lifetime_ms` is not positive, the token is valid for as long as the configuration
        allows.

        Raises DelegationTokenAuthDisabled, or PolicyViolation if the owner already has too many
        tokens.
        """
        self.check_enabled()
        now_ms = self._clock.wall_ms()
        longest_ms = self._config.int("delegation.token.max.lifetime.ms")
        # The maximum lifetime is fixed. A renewal can extend the expiry time only up to that limit
        # (KIP-48).
        ends_at_ms = now_ms + (min(lifetime_ms, longest_ms) if lifetime_ms > 0 else longest_ms)
        token = TokenNode(
            urlsafe_b64encode(random.uuid()).rstrip(b"=").decode(),
            str(owner),
            str(requester),
            tuple(map(str, renewers)),
            now_ms,
            ends_at_ms,
            min(ends_at_ms, now_ms + self._config.int("delegation.token.expiry.time.ms")),
        )
        try:
            await self._make_base()
            await self._known.refresh(self._store)
            await self._remove_expired()
            self._check_count(str(owner))
            await self._commit(Create(token_path(token.token_id), encode_token(token)), token)
            self._known.learn(token.token_id, token)
        except MetadataError as error:
            raise _no_answer(error) from error
        return token

    def _check_count(self, owner: str) -> None:
        most = self._config.int("barnabas.delegation.tokens.per.user")
        if self._known.count(owner) >= most:
            raise PolicyViolation(
                f"{owner} already has {most} delegation tokens: expire some or raise "
                "barnabas.delegation.tokens.per.user"
            )

    async def renew(self, who: Principal, secret: bytes, period_ms: int) -> int:
        """Extend a token's expiry time, and return the new expiry time. Raises the same errors as
        `_change`.
        """
        if period_ms < 0:
            period_ms = self._config.int("delegation.token.expiry.time.ms")
        return await self._change(who, secret, period_ms)

    async def expire(self, who: Principal, secret: bytes, period_ms: int) -> int:
        """Make a token expire after this time, or immediately if the time is negative. Return when
        it will expire.

        Raises the same errors as `_change`.
        """
        return await self._change(who, secret, period_ms if period_ms >= 0 else None)

    async def all(self, is_wanted: Callable[[TokenNode], bool]) -> list[TokenNode]:
        """Return all tokens for which `is_wanted` is true. Raises DelegationTokenAuthDisabled."""
        self.check_enabled()
        try:
            return [token for token in await self._load() if is_wanted(token)]
        except MetadataError as error:
            raise _no_answer(error) from error

    async def _change(self, who: Principal, secret: bytes, period_ms: int | None) -> int:
        """Make a token expire after this time, or remove it if the time is None. Return when it
        will expire.

        Raises DelegationTokenAuthDisabled, DelegationTokenNotFound, DelegationTokenOwnerMismatch or
        DelegationTokenExpired.
        """
        self.check_enabled()
        try:
            for _ in range(_ATTEMPTS):
                with suppress(BadVersion, NoNode):  # if so, the token was changed in the meantime
                    return await self._try_change(who, secret, period_ms)
        except MetadataError as error:
            raise _no_answer(error) from error
        raise UnknownServerError("the token was changed by other clients at every attempt; retry")

    async def _try_change(self, who: Principal, secret: bytes, period_ms: int | None) -> int:
        token = await self._with_secret(secret)
        if token is None:
            raise DelegationTokenNotFound
        if not is_owner_or_renewer(token, who):
            raise DelegationTokenOwnerMismatch
        if self._has_ended(token):
            raise DelegationTokenExpired
        path, now_ms = token_path(token.token_id), self._clock.wall_ms()
        if period_ms is None:
            await self._commit(Delete(path), token)
            return now_ms
        expires_at_ms = min(token.ends_at_ms, now_ms + period_ms)
        changed = token._replace(expires_at_ms=expires_at_ms)
        node = await self._store.read(path)
        if node is None:
            raise DelegationTokenNotFound
        await self._commit(Set(path, encode_token(changed), node.version), token)
        return expires_at_ms

    async def _with_secret(self, secret: bytes) -> TokenNode | None:
        """Return the token that has this secret."""
        async for token_id in in_slices(await children(self._store, TOKENS)):
            # Kafka, too, looks up tokens by their HMAC. Secrets are derived from the token ids, so
            # they are not stored.
            if compare_digest(self.secret(token_id), secret):
                return await self._read(token_id)
        return None

    async def _read(self, token_id: str) -> TokenNode | None:
        node = await self._store.read(token_path(token_id))
        return None if node is None else decoded_token(token_id, node.data)

    def _has_ended(self, token: TokenNode) -> bool:
        now_ms = self._clock.wall_ms()
        return token.ends_at_ms < now_ms or token.expires_at_ms < now_ms

    # --- the tree --------------------------------------------------------------------------------

    async def _load(self) -> list[TokenNode]:
        found = await read_tokens(self._store, await children(self._store, TOKENS))
        return [token for token in found.values() if token is not None]

    async def _commit(self, operation: Operation, token: TokenNode) -> None:
        """Change a token's node, and notify Kafka brokers, which cache tokens."""
        # Use two commits, as Kafka does, because Kafka brokers would not be notified of the change
        # without the second commit.
        await self._store.commit([operation])
        change = Create(CHANGE_PREFIX, token.token_id.encode(), sequential=True)
        await self._store.commit([change])
        for name in sorted(await children(self._store, CHANGES))[:-_CHANGES_KEPT]:
            with suppress(NoNode):
                await self._store.commit([Delete(f"{CHANGES}/{name}")])

    async def _make_base(self) -> None:
        for path in BASE_PATHS:
            if await self._store.read(path) is None:
                with suppress(NodeExists):
                    await self._store.commit([Create(path)])

    async def _remove_expired(self) -> None:
        for ended in self._known.ended_before(self._clock.wall_ms()):
            token = await self._read(ended.token_id)
            if token is not None and not self._has_ended(token):
                self._known.learn(token.token_id, token)  # the token has been renewed
                continue
            with suppress(NoNode):
                await self._commit(Delete(token_path(ended.token_id)), ended)
            self._known.forget(ended.token_id)


def principal(text: str) -> Principal:
    """Return the principal that is written `User:alice`."""
    return Principal(*text.partition(":")[::2])


def is_owner_or_renewer(token: TokenNode, who: Principal) -> bool:
    """Return whether this user may renew or expire the token because the user is its owner, its
    requester or one of its renewers.
    """
    return str(who) in (token.owner, token.requester, *token.renewers)


def _no_answer(error: MetadataError) -> UnknownServerError:
    return UnknownServerError(f"the metadata store does not answer: {error}")
