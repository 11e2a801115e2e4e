"""Caches the SCRAM credentials of all users, which are stored in the metadata tree.

The credentials are loaded when they are first needed. After that, they are kept up to date by
notifications of config changes. The credentials of all users are cached, so that authentication
takes the same time whether or not a user exists.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from barnabas.cluster import layout
from barnabas.cluster.config_changes import USERS
from barnabas.cluster.loading import children
from barnabas.cluster.store import BadVersion, MetadataError, MetadataStore, Set, Znode
from barnabas.cluster.user_nodes import (
    USER_CONFIGS,
    decode_decoy_key,
    decoded_user,
    encode_decoy_key,
    user_path,
)
from barnabas.errors import BrokerNotAvailable, CorruptData
from barnabas.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512, Identity, SaslServer
from barnabas.security.scram import (
    MIN_ITERATIONS,
    ScramAccount,
    ScramCredential,
    ScramServer,
    ScramUser,
    asked_user,
    decoy_credential,
    new_salt,
    parse_credential,
    principal_of,
)

if TYPE_CHECKING:
    from barnabas.broker.security.delegation_tokens import DelegationTokens
    from barnabas.security.acl import Principal

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 500  # the number of nodes in a request
_NONE: Final[Mapping[str, ScramAccount]] = MappingProxyType({})
SCRAM_MECHANISMS: Final = (SCRAM_SHA_256, SCRAM_SHA_512)


Users = dict[str, Mapping[str, ScramCredential]]
"""The credentials of each user, by mechanism."""


class ScramCredentials:
    """The SCRAM credentials of a broker, which all its listeners share."""

    def __init__(self, store: MetadataStore, tokens: DelegationTokens | None = None) -> None:
        """`tokens` are the delegation tokens, if any."""
        self._store = store
        self._tokens = tokens
        self._accounts: dict[str, Mapping[str, ScramAccount]] | None = None  # by user and mechanism
        self._loading = asyncio.Lock()
        self._decoy_key = new_salt()  # used until the key of the cluster has been read
        # how many credentials have each iteration count
        self._iterations: Counter[int] = Counter()
        self._on_deleted: Callable[[Principal, str], None] | None = None

    # --- authentication --------------------------------------------------------------------------

    def server(self, mechanism: str) -> SaslServer:
        """Return the server side of an exchange that is about to begin."""
        return _Exchange(self, mechanism)

    @property
    def is_loaded(self) -> bool:
        return self._accounts is not None

    async def load_once(self) -> None:
        """Read all credentials when they are first needed. All waiting clients share one read.
        Raises MetadataError.
        """
        async with self._loading:
            if self._accounts is None:
                await self.load()

    def find(self, mechanism: str, user: str) -> ScramAccount | None:
        """Return a user's account for a mechanism, or None if there is none."""
        assert self._accounts is not None, "not loaded"
        # All accounts are built in advance, so that the lookup does not take longer for users that
        # exist.
        return self._accounts.get(user, _NONE).get(mechanism)

    async def token(self, mechanism: str, token_id: str) -> ScramAccount | None:
        """Return the account that belongs to a delegation token. Raises MetadataError."""
        return None if self._tokens is None else await self._tokens.account(mechanism, token_id)

    def decoy(self, user: ScramUser) -> ScramCredential:
        """Return a fake credential for an unknown user. It is always the same for a given name."""
        # the most common iteration count of the credentials
        usual = self._iterations.most_common(1)
        iterations = usual[0][0] if usual and not user.is_token else MIN_ITERATIONS
        return decoy_credential(self._decoy_key, user.name, iterations)

    # --- following the tree ----------------------------------------------------------------------

    def set_deletion_listener(self, listener: Callable[[Principal, str], None]) -> None:
        """Set a callback that is called for each principal that can no longer authenticate with a
        mechanism.
        """
        self._on_deleted = listener

    def _notify_of_deleted(
        self, before: Mapping[str, ScramAccount], after: Mapping[str, object]
    ) -> None:
        if self._on_deleted is not None:
            # Do not call it when a password is changed, because the session continues until it must
            # re-authenticate (KIP-368).
            for mechanism in before.keys() - after.keys():
                self._on_deleted(before[mechanism].identity.principal, mechanism)

    async def load(self) -> None:
        """Read all credentials. Raises MetadataError."""
        loaded = await load_credentials(self._store)
        self._decoy_key = await _decoy_key(self._store) or self._decoy_key
        self._iterations.clear()
        before = self._accounts or {}
        self._accounts = {user: self._count(user, found) for user, found in loaded.items()}
        for user, accounts in before.items():
            self._notify_of_deleted(accounts, self._accounts.get(user, _NONE))

    async def on_changed(self, path: str) -> None:
        """Read one user's credentials again. Raises MetadataError."""
        name = path.removeprefix(f"{USERS}/")
        user = decoded_user(name)
        # There is nothing to update before the first use. The nodes of the default user and of
        # users' clients contain only quotas.
        if self._accounts is None or user is None or "/" in name:
            return
        found = _credentials(user, await self._store.read(user_path(user)))
        before = self._accounts.pop(user, _NONE)
        # Decoys use the iteration count that most of the credentials have.
        for account in before.values():
            self._iterations[account.credential.iterations] -= 1
        if found:
            self._accounts[user] = self._count(user, found)
        self._notify_of_deleted(before, found)

    def _count(self, user: str, found: Mapping[str, ScramCredential]) -> Mapping[str, ScramAccount]:
        """Return a user's accounts, and count their iterations, because decoys use the most common
        number.
        """
        self._iterations.update(credential.iterations for credential in found.values())
        identity = Identity(principal_of(user))
        return {name: ScramAccount(credential, identity) for name, credential in found.items()}


class _Exchange:
    """An exchange that first waits until the credentials and the token have been loaded."""

    __slots__ = ("_credentials", "_mechanism", "_server", "_token")

    def __init__(self, credentials: ScramCredentials, mechanism: str) -> None:
        self._credentials = credentials
        self._mechanism = mechanism
        self._token: ScramAccount | None = None
        self._server = ScramServer(mechanism, self._find, credentials.decoy)

    @property
    def identity(self) -> Identity | None:
        return self._server.identity

    @property
    def known_user(self) -> str:
        return self._server.known_user

    def respond(self, message: bytes) -> bytes | Awaitable[bytes]:
        wanted = asked_user(message)
        by_token = wanted is not None and wanted.is_token
        if self._credentials.is_loaded and not by_token:
            return self._server.respond(message)
        return self._respond_later(message, wanted)

    async def _respond_later(self, message: bytes, wanted: ScramUser | None) -> bytes:
        try:
            await self._credentials.load_once()
            if wanted is not None and wanted.is_token:
                self._token = await self._credentials.token(self._mechanism, wanted.name)
        except MetadataError as error:
            # Do not respond, because a client would treat any error as final.
            raise BrokerNotAvailable(f"cannot read the credentials of users: {error}") from error
        return self._server.respond(message)

    def _find(self, user: ScramUser) -> ScramAccount | None:
        if user.is_token:
            return self._token
        return self._credentials.find(self._mechanism, user.name)


async def _decoy_key(store: MetadataStore) -> bytes | None:
    """Return the key for decoys, which all brokers share, or None if there is none.

    The key is created by the first broker that needs it. Raises MetadataError if the tree cannot be
    read.
    """
    while True:
        node = await store.read(USER_CONFIGS)
        if node is None:
            return None  # in that case, the cluster has no users either
        try:
            if known := decode_decoy_key(node.data):
                return known
            made = new_salt()
            await store.commit([Set(USER_CONFIGS, encode_decoy_key(made), node.version)])
        except BadVersion:
            continue  # because another broker created it first
        except (MetadataError, CorruptData) as error:
            _log.warning(
                "the brokers do not share a key for decoy credentials, so clients can find out "
                "which users exist by comparing brokers or restarts: %s",
                error,
            )
            return None
        return made


async def load_credentials(store: MetadataStore, users: Sequence[str] | None = None) -> Users:
    """Return the credentials of these users, or of all users if None. Raises MetadataError."""
    if users is None:
        names = map(decoded_user, await children(store, USER_CONFIGS))
        users = [user for user in names if user is not None]
    loaded: Users = {}
    for start in range(0, len(users), _AT_ONCE):
        some = users[start : start + _AT_ONCE]
        nodes = await store.read_many([user_path(user) for user in some])
        for user, node in zip(some, nodes, strict=True):
            if found := _credentials(user, node):
                loaded[user] = found
    return loaded


def _credentials(user: str, node: Znode | None) -> dict[str, ScramCredential]:
    """Return the credentials in a user's node. None of the node's contents is logged."""
    if node is None:
        return {}
    found: dict[str, ScramCredential] = {}
    try:
        config = layout.decode_config(user_path(user), node.data)
    except CorruptData:
        _log.error("cannot read the settings of user %r", user)
        return {}
    for mechanism in SCRAM_MECHANISMS:
        if mechanism in config:
            try:
                found[mechanism] = parse_credential(mechanism, config[mechanism])
            except CorruptData as error:
                _log.error("user %r: %s", user, error)
    return found
