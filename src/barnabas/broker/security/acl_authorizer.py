"""Authorizes requests according to the ACLs in the metadata tree (SE-4), and caches its decisions.

A decision depends only on the ACLs, the principal, its host, the operation and the resource. It is
therefore cached until an ACL changes, and repeating a request costs only one lookup. A separate
logger logs denials at INFO and grants at DEBUG, in the same words as Kafka. If decisions of one
kind are repeated for a client, only a few of them are logged, followed by the number of decisions
that were not logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acl_store import AclStore
from barnabas.broker.security.audit_trail import AuditTrail
from barnabas.broker.security.authorization import ASKED, Audit
from barnabas.security.acl_binding import parse_principal
from barnabas.security.acl_host import java_host
from barnabas.security.acl_rules import AclRules

if TYPE_CHECKING:
    from barnabas.broker.security.authorization import Asking, Needs
    from barnabas.broker.security.denials import Denials
    from barnabas.clock import Clock, Random
    from barnabas.cluster.store import MetadataStore
    from barnabas.config import BrokerConfig

AUDIT_LOG: Final = "barnabas.authorizer"
"""The logger for decisions. The corresponding logger in Kafka is `kafka.authorizer.logger`."""

_audit = logging.getLogger(AUDIT_LOG)

_MOST_DECISIONS = 20_000
_LONGEST_NAME = 249  # the longest topic name; decisions about longer group names are not cached


class AclAuthorizer:
    """The authorizer used by a broker if `authorizer.class.name` is set."""

    __slots__ = ("_decisions", "_denials", "_rules", "_trail", "acls", "grants")

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        clock: Clock,
        random: Random,
        denials: Denials,
    ) -> None:
        """Raises ConfigError if one of the super users is not a valid principal."""
        self._rules = AclRules(
            super_users(config.str("super.users")),
            allows_unruled=config.bool("allow.everyone.if.no.acl.found"),
        )
        self._decisions: dict[object, bool] = {}
        self._trail = AuditTrail(_audit, clock)
        self._denials = denials
        self.grants: object | None = object()
        self.acls = AclStore(store, self._rules, self._on_rules_changed, clock, random)

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        client = context.client
        question = (client.principal, client.address, needs, resource_name)
        answer = self._decisions.get(question)
        # Check the log level every time, because it can be changed while the broker is running
        # (KIP-412).
        logs_grants = _audit.isEnabledFor(logging.DEBUG)
        if answer and not logs_grants:
            return True  # the usual case
        if answer is None:
            answer = self._rules.allows(
                str(client.principal), java_host(client.address), *needs, resource_name
            )
            # A group id or transactional id can be as long as 32 KiB, and up to twenty thousand
            # decisions are cached.
            if len(resource_name) <= _LONGEST_NAME:
                self._keep(question, answer)
        # As long as allowed requests are logged, connections must not cache their grants.
        self.grants = None if logs_grants else self.grants or object()
        level = _level(audit, answer)
        if level == logging.INFO:
            self._denials.add(context, needs, resource_name, self._rules)
        if level and _audit.isEnabledFor(level):
            self._trail.log(level, context, needs, f"LITERAL:{resource_name}", audit.references)
        return answer

    def _on_rules_changed(self) -> None:
        self._decisions.clear()
        self.grants = object()

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        client = context.client
        question = (client.principal, client.address, needs)
        answer = self._decisions.get(question)
        if answer is None:
            answer = self._rules.allows_somewhere(
                str(client.principal), java_host(client.address), *needs
            )
            self._keep(question, answer)
        level = _level(ASKED, answer)
        if not answer:
            self._denials.add(context, needs, None, self._rules)
        if _audit.isEnabledFor(level):
            self._trail.log(level, context, needs, "UNKNOWN:NONE", 0)
        return answer

    def _keep(self, question: object, answer: bool) -> None:
        # Drop all decisions and not just the oldest. The cache is full only if clients keep asking
        # about new names, and tracking the order of decisions would not be worth the cost.
        if len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.clear()
        self._decisions[question] = answer


def super_users(text: str) -> list[str]:
    """Parse a list of principals such as `User:alice;User:CN=broker,O=x`. Raises ConfigError if the
    list is invalid.
    """
    from barnabas.errors import ConfigError

    principals = []
    for item in filter(None, map(str.strip, text.split(";"))):
        try:
            principals.append(str(parse_principal(item)))
        except ValueError as error:
            raise ConfigError(f"super.users: {error}; separate several principals with ;") from None
    return principals


def _level(audit: Audit, is_allowed: bool) -> int:
    """Return the level at which to log a decision, or 0 if it must not be logged."""
    if is_allowed:
        return logging.DEBUG if audit.logs_grant else 0
    return logging.INFO if audit.logs_denial else 0
