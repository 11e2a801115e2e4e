"""The rules of access control: a part of `Admin` (KIP-140)."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client import arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.errors import check
from barnabas.protocol.api import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from barnabas.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)

Acls = AclBinding | Iterable[AclBinding]
AclFilters = AclFilter | Iterable[AclFilter]


class AclAdmin(AdminCalls):
    """Methods of `Admin`."""

    async def create_acls(self, acls: Acls) -> None:
        """Create rules; one that is there already stays.

        Raises the first KafkaError (ClusterAuthorizationFailed, InvalidRequest, SecurityDisabled
        without an authorizer); the other rules are created all the same.

            await admin.create_acls(
                AclBinding(
                    Pattern(ResourceType.TOPIC, "orders"),
                    AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW),
                )
            )
        """
        wanted = [_binding(each) for each in _several(acls, AclBinding, "acls")]
        if not wanted:
            return
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    resource_pattern_type=pattern.pattern_type,
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
                for pattern, entry in wanted
            ]
        )

        async def attempt() -> CreateAclsResponse:
            return await self._cluster.call_any(CREATE_ACLS, request, CreateAclsResponse)

        answer = await self._persist(attempt)
        for binding, result in zip(wanted, answer.results, strict=True):
            check(result.error_code, f"rule {binding.pattern}", result.error_message)

    async def describe_acls(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        """The rules that a filter matches, sorted; all without one.

        Raises ClusterAuthorizationFailed, SecurityDisabled without an authorizer.
        """
        (chosen,) = _several(wanted or AclFilter(), AclFilter, "wanted")
        request = DescribeAclsRequest(
            resource_type_filter=chosen.resource_type,
            resource_name_filter=chosen.name,
            pattern_type_filter=chosen.pattern_type,
            principal_filter=chosen.principal,
            host_filter=chosen.host,
            operation=chosen.operation,
            permission_type=chosen.permission,
        )

        async def attempt() -> DescribeAclsResponse:
            answer = await self._cluster.call_any(DESCRIBE_ACLS, request, DescribeAclsResponse)
            check(answer.error_code, "describing rules", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        return sorted(_rule(each, acl) for each in answer.resources for acl in each.acls)

    async def delete_acls(self, filters: AclFilters) -> list[AclBinding]:
        """Delete the rules that the filters match; those that were deleted, sorted.

        Raises the first KafkaError; what other filters match is deleted all the same.
        """
        wanted = _several(filters, AclFilter, "filters")
        if not wanted:
            return []
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in wanted
            ]
        )

        async def attempt() -> DeleteAclsResponse:
            return await self._cluster.call_any(DELETE_ACLS, request, DeleteAclsResponse)

        answer = await self._persist(attempt)
        deleted = set()
        for result in answer.filter_results:
            check(result.error_code, "deleting rules", result.error_message)
            for acl in result.matching_acls:
                check(acl.error_code, f"rule about {acl.resource_name}", acl.error_message)
                deleted.add(_rule(acl, acl))
        return sorted(deleted)


def _rule(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl,
    acl: AclDescription | DeleteAclsMatchingAcl,
) -> AclBinding:
    return AclBinding(
        Pattern(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
        ),
        AclEntry(
            acl.principal, acl.host, Operation(acl.operation), PermissionType(acl.permission_type)
        ),
    )


def _several(given: object, kind: type, argument: str) -> list:  # type: ignore[type-arg]
    """The items, each of this kind. Raises TypeError."""
    items = [given] if isinstance(given, kind) else arguments.several(given, argument)
    for each in items:
        if not isinstance(each, kind):
            raise TypeError(f"{argument}: must be {kind.__name__}, not {type(each).__name__}")
    return items


def _binding(binding: AclBinding) -> AclBinding:
    """A rule that can be sent. Raises TypeError, ValueError."""
    pattern, entry = binding
    arguments.text(pattern.name, "pattern.name")
    arguments.text(entry.host, "entry.host")
    if ":" not in arguments.text(entry.principal, "entry.principal"):
        raise ValueError(f"entry.principal: {entry.principal!r} is not written as User:name")
    return binding
