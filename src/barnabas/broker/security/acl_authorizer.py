"""AclAuthorizer: decides by the ACLs in the metadata tree (SE-4), and keeps its decisions.

A decision depends on the rules, the principal, its host, the operation and the resource alone, so
each is made once until a rule changes; a request like the one before costs a look-up. Denials are
logged at INFO and grants at DEBUG, by a logger of their own, in the words of Kafka's.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acl_store import AclStore
from barnabas.security.acl_binding import parse_principal, pascal_name
from barnabas.security.acl_rules import AclRules

if TYPE_CHECKING:
    from barnabas.broker.security.authorization import Asking, Needs
    from barnabas.clock import Clock, Random
    from barnabas.cluster.store import MetadataStore
    from barnabas.config import BrokerConfig

AUDIT_LOG: Final = "barnabas.authorizer"
"""The logger of decisions; Kafka's is `kafka.authorizer.logger`."""

_audit = logging.getLogger(AUDIT_LOG)

_MOST_DECISIONS = 20_000
_LONGEST_NAME = 249  # of a topic; longer ones of groups are decided each time


class AclAuthorizer:
    """The authorizer of a broker with `authorizer.class.name`."""

    __slots__ = ("_decisions", "_rules", "acls")

    def __init__(
        self, config: BrokerConfig, store: MetadataStore, clock: Clock, random: Random
    ) -> None:
        """Raises ConfigError for super users that are no principals."""
        self._rules = AclRules(
            super_users(config.str("super.users")),
            allows_unruled=config.bool("allow.everyone.if.no.acl.found"),
        )
        self._decisions: dict[object, bool] = {}
        self.acls = AclStore(store, self._rules, self._decisions.clear, clock, random)

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, *, is_audited: bool = True
    ) -> bool:
        client = context.client
        question = (client.principal, client.address, needs, resource_name)
        answer = self._decisions.get(question)
        if answer is None:
            answer = self._rules.allows(
                str(client.principal), java_host(client.address), *needs, resource_name
            )
            if len(resource_name) <= _LONGEST_NAME:
                self._keep(question, answer)
        if is_audited:
            _log_decision(context, needs, f"LITERAL:{resource_name}", answer)
        return answer

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        client = context.client
        question = (client.principal, client.address, needs)
        answer = self._decisions.get(question)
        if answer is None:
            answer = self._rules.allows_somewhere(
                str(client.principal), java_host(client.address), *needs
            )
            self._keep(question, answer)
        _log_decision(context, needs, "UNKNOWN:NONE", answer)
        return answer

    def _keep(self, question: object, answer: bool) -> None:
        if len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.clear()
        self._decisions[question] = answer


def super_users(text: str) -> list[str]:
    """The principals of `User:alice;User:CN=broker,O=x`. Raises ConfigError for other texts."""
    from barnabas.errors import ConfigError

    principals = []
    for item in filter(None, map(str.strip, text.split(";"))):
        try:
            principals.append(str(parse_principal(item)))
        except ValueError as error:
            raise ConfigError(f"super.users: {error}; several are separated by ;") from None
    return principals


def java_host(address: str) -> str:
    """An IP address as Kafka compares it with a rule's host: IPv6 written out, without leading
    zeros, and IPv4 as such even if it came through an IPv6 socket."""
    if ":" not in address:
        return address
    plain, percent, scope = address.partition("%")
    ip = ipaddress.IPv6Address(plain)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in ip.exploded.split(":"))
    return f"{groups}{percent}{scope}"


def _log_decision(context: Asking, needs: Needs, resource: str, is_allowed: bool) -> None:
    level = logging.DEBUG if is_allowed else logging.INFO
    if not _audit.isEnabledFor(level):
        return
    client = context.client
    _audit.log(
        level,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s:%s for request = %s",
        client.principal,
        "Allowed" if is_allowed else "Denied",
        pascal_name(needs.operation),
        java_host(client.address),
        pascal_name(needs.resource_type),
        resource,
        context.api.name,
    )
