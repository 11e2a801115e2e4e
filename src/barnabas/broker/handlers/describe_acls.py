"""DescribeAcls (key 29): list the access control rules that match a filter (KIP-140)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.acl_requests import filter_of
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.security.acl_binding import AclEntry, Pattern


def handle(context: Context, request: DescribeAclsRequest) -> Outcome:
    wanted = filter_of(request)
    if not context.is_allowed(CLUSTER_NAME):
        return _failure(ClusterAuthorizationFailed())
    acls = context.node.authorizer.acls
    if acls is None:
        return _failure(SecurityDisabled("No Authorizer is configured on the broker"))
    # A filter with an unknown code is not an error. It matches nothing.
    if wanted is None:
        return DescribeAclsResponse()
    found = acls.describe(wanted)
    return DescribeAclsResponse(resources=[_resource(*each) for each in found.items()])


def _failure(error: KafkaError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=str(error))


def _resource(pattern: Pattern, entries: list[AclEntry]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in entries
        ],
    )
