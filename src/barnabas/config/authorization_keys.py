"""Broker configs of Kafka 3.9 about access control."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_AUTHORIZATION = (
    ("allow.everyone.if.no.acl.found", "boolean", False, "",
     "Whether all users may use resources without ACLs."),
    ("authorizer.class.name", "string", "", "", "Java class that authorizes requests."),
    ("super.users", "string", "", "", "Users without restrictions, as User:name;User:name."),
)  # fmt: skip

AUTHORIZATION_KEYS: dict[str, ConfigKey] = table(_AUTHORIZATION, "there is no authorizer yet")
