"""Lists Kafka 3.9's broker configs for access control, and checks the configured authorizer."""

from __future__ import annotations

from typing import Final

from barnabas.config.key import ConfigKey, table
from barnabas.errors import ConfigError

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
_OF_KRAFT: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_AUTHORIZATION = (
    ("allow.everyone.if.no.acl.found", "boolean", False, "",
     "Whether everyone may access resources that have no ACLs."),
    ("authorizer.class.name", "string", "", "",
     f"The authorizer: {ACL_AUTHORIZER}, which is built in, or none."),
    ("super.users", "string", "", "", "Users who may do everything, as User:name;User:name."),
)  # fmt: skip

AUTHORIZATION_KEYS: dict[str, ConfigKey] = table(_AUTHORIZATION)


def check_authorizer(name: str) -> None:
    """Raise ConfigError if the `authorizer.class.name` is not supported (SE-6)."""
    if name in ("", ACL_AUTHORIZER):
        return
    reason = (
        "keeps its ACLs in KRaft's metadata log, which a ZooKeeper cluster does not have"
        if name == _OF_KRAFT
        else "is a Java class, which Barnabas cannot run"
    )
    raise ConfigError(
        f"authorizer.class.name={name} {reason}: set it to {ACL_AUTHORIZER} and add the ACLs "
        "with kafka-acls.sh or barnabas acls"
    )
