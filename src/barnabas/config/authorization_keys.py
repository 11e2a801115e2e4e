"""Lists the broker configs of Kafka 3.9 for access control, and checks the authorizer's class."""

from __future__ import annotations

from typing import Final

from barnabas.config.key import ConfigKey, table
from barnabas.errors import ConfigError

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
_OF_KRAFT: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_AUTHORIZATION = (
    ("allow.everyone.if.no.acl.found", "boolean", False, "",
     "Whether all users may use resources without ACLs."),
    ("authorizer.class.name", "string", "", "",
     f"What decides on requests: {ACL_AUTHORIZER}, which is built in, or nothing."),
    ("super.users", "string", "", "", "Users without restrictions, as User:name;User:name."),
)  # fmt: skip

AUTHORIZATION_KEYS: dict[str, ConfigKey] = table(_AUTHORIZATION)


def check_authorizer(name: str) -> None:
    """Refuse an `authorizer.class.name` that is not honoured (SE-6). Raises ConfigError."""
    if name in ("", ACL_AUTHORIZER):
        return
    reason = (
        "keeps its rules in KRaft's log, which a cluster with ZooKeeper does not have"
        if name == _OF_KRAFT
        else "is a Java class, and Barnabas runs none"
    )
    raise ConfigError(
        f"authorizer.class.name={name} {reason}: set it to {ACL_AUTHORIZER}, whose rules Barnabas "
        "applies, and put the rules there (kafka-acls.sh, barnabas acls)"
    )
