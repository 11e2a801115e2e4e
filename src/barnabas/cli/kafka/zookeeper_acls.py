"""Implements `kafka-acls.sh --authorizer-properties zookeeper.connect=...` as in Kafka 3.9.1.

Kafka's tool creates its own AclAuthorizer, which reads and writes the rules in ZooKeeper. The first
rules of a cluster can therefore be added before any broker runs. A node under /kafka-acl-changes
notifies running brokers of a change. Kafka 4.0 removed this option along with ZooKeeper.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.zookeeper_brokers import open_store
from barnabas.cli.metadata.tree_source import command_settings
from barnabas.config import BrokerConfig, load_properties
from barnabas.config.authorization_keys import ACL_AUTHORIZER
from barnabas.errors import KafkaError
from barnabas.security.acl_binding import AclBinding, AclFilter

if TYPE_CHECKING:
    from barnabas.broker.security.acl_store import AclStore
    from barnabas.cluster.zookeeper_settings import Settings

PROPERTIES: Final = "authorizer-properties"
_CLASS, _TLS_FILE = "authorizer", "zk-tls-config-file"
_CLASSES: Final = (ACL_AUTHORIZER, "kafka.security.auth.SimpleAclAuthorizer")  # the latter till 2.4
_PREFIX: Final = "authorizer."
_URL: Final = "zookeeper.url"  # the authorizer's name for zookeeper.connect

_DEPRECATED: Final = (
    "Warning: support for ACL configuration directly through the authorizer is deprecated and will "
    "be removed in a future release. Please use --bootstrap-server instead to set ACLs through the "
    "admin client."
)


def is_by_authorizer(given: Given) -> bool:
    """Return whether the command line concerns rules in ZooKeeper. Raises BadCommandLine."""
    if "bootstrap-server" in given:
        for option in (_CLASS, PROPERTIES, _TLS_FILE):
            given.not_with("bootstrap-server", option)
        return False
    if PROPERTIES not in given:
        # In Kafka, --authorizer alone may suffice, because a third-party class may need no
        # settings. Our only class is AclAuthorizer, which always needs a ZooKeeper address.
        given.only_with(_CLASS, PROPERTIES)
        given.only_with(_TLS_FILE, PROPERTIES)
        return False
    given.not_with("command-config", PROPERTIES)  # it is for an admin client, and none is used here
    return True


def warn_of_authorizer() -> None:
    """Print Kafka's warning about the option to standard error."""
    click.echo(_DEPRECATED, err=True)


def _settings(given: Given) -> Settings:
    """Return the settings for connecting to ZooKeeper. If ZooKeeper authenticates us, we own new
    nodes. Raises BadCommandLine or ConfigError.
    """
    name = given.text(_CLASS)
    if name is not None and name not in _CLASSES:
        raise BadCommandLine(
            f"--{_CLASS} {name}: Java classes cannot be run; leave it out for {ACL_AUTHORIZER}, "
            "which keeps its rules in ZooKeeper"
        )
    file = given.text(_TLS_FILE)
    own: dict[str, str] = {}
    # The file keeps passwords off the command line, where `ps` would show them (KIP-515). In the
    # file, the prefix is optional.
    general = _pairs(given.texts(PROPERTIES)) | ({} if file is None else load_properties(file))
    for name in [each for each in general if each.startswith(_PREFIX)]:
        own[name.removeprefix(_PREFIX)] = general.pop(name)
    if _URL in own:
        own["zookeeper.connect"] = own.pop(_URL)
    # The authorizer's own value takes precedence. Settings unrelated to ZooKeeper have no effect.
    properties = {
        name: text
        for name, text in {**general, **own}.items()
        if name.startswith(("zookeeper.", "barnabas.zookeeper."))
    }
    if not properties.get("zookeeper.connect"):
        raise BadCommandLine(
            f"--{PROPERTIES} names no ZooKeeper: add --{PROPERTIES} "
            "zookeeper.connect=HOST:PORT[/CHROOT]"
        )
    settings = command_settings(BrokerConfig(properties))
    # Kafka's tool treats zookeeper.set.acl as true if SASL is configured for ZooKeeper. Brokers
    # default to false, but a tool that created open nodes among protected ones would undo the
    # protection.
    return settings._replace(is_protected=settings.is_protected or settings.has_identity)


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return the pairs in --authorizer-properties, one per occurrence. Raises
    BadCommandLine."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise BadCommandLine(f"--{PROPERTIES} {text}: not of the form NAME=VALUE")
        pairs[name] = value
    return pairs


class ZooKeeperAcls:
    """Manages the rules in a tree, with the methods of `Admin` that `kafka.acls` uses."""

    def __init__(self, acls: AclStore) -> None:
        self._acls = acls

    async def describe_acls(self, wanted: AclFilter) -> list[AclBinding]:
        """Return the rules that match a filter."""
        found = self._acls.describe(wanted)
        return [AclBinding(pattern, each) for pattern, acls in found.items() for each in acls]

    async def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Add all rules that are accepted, and then raise the first KafkaError, if any."""
        _raise_first(await self._acls.create(bindings))

    async def delete_acls(self, filters: AclFilter | Sequence[AclFilter]) -> None:
        """Remove the rules that match filters, and then raise the first KafkaError, if any."""
        wanted = [filters] if isinstance(filters, AclFilter) else filters
        for deleted in await self._acls.delete(wanted):
            _raise_first(each.error for each in deleted)


def _raise_first(errors: Iterable[KafkaError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


@asynccontextmanager
async def zookeeper_acls(given: Given) -> AsyncIterator[ZooKeeperAcls]:
    """Open the tree specified on the command line. Like Kafka's tool, this creates missing nodes.

    Raises BadCommandLine, ConfigError, MetadataError or CorruptData.
    """
    from barnabas.broker.security.acl_store import AclStore
    from barnabas.clock import SystemClock, SystemRandom
    from barnabas.security.acl_rules import AclRules

    async with open_store(_settings(given), makes_chroot=True) as store:
        # The brokers use the same store. It also writes the change node, and retries if another
        # writer changes a node, so it is safe while brokers are writing rules.
        acls = AclStore(store, AclRules(), lambda: None, SystemClock(), SystemRandom())
        try:
            await acls.open()
            yield ZooKeeperAcls(acls)
        finally:
            await acls.close()
