"""The authorizer that a broker's settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authorization import AllowAll, Authorizer

if TYPE_CHECKING:
    from barnabas.clock import Clock, Random
    from barnabas.cluster.store import MetadataStore
    from barnabas.config import BrokerConfig


async def open_authorizer(
    config: BrokerConfig, store: MetadataStore, clock: Clock, random: Random
) -> Authorizer:
    """The authorizer of a broker with these settings, with its rules read.

    Raises ConfigError, and MetadataError or CorruptData if the rules cannot be read whole: no
    client is served without them.
    """
    if not (config.is_set("authorizer.class.name") and config.str("authorizer.class.name")):
        return AllowAll()
    from barnabas.broker.security.acl_authorizer import AclAuthorizer  # few brokers have it

    authorizer = AclAuthorizer(config, store, clock, random)
    await authorizer.acls.open()
    return authorizer
