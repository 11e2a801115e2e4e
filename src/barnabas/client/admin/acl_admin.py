"""Implements the part of `Admin` that changes and lists access control rules (KIP-140)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from barnabas.client import arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.errors import check
from barnabas.errors import UnsupportedVersion
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
    parse_principal,
)

C = TypeVar("C", bound=IntEnum)

_FOR_FILTERS: tuple[IntEnum, ...] = (
    ResourceType.ANY,
    PatternType.ANY,
    PatternType.MATCH,
    Operation.ANY,
    PermissionType.ANY,
)


class AclAdmin(AdminCalls):
    """Adds, lists and removes access control rules."""

    async def create_acls(self, bindings: AclBinding | Iterable[AclBinding]) -> None:
        """Add rules; rules that already exist are left unchanged.

        Raises the first KafkaError (InvalidRequest, ClusterAuthorizationFailed, or SecurityDisabled
        if a broker has no authorizer); the other rules in the call are still added.

            await admin.create_acls(AclBinding(
                Pattern(ResourceType.TOPIC, "orders"),
                AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW),
            ))
        """
        request = CreateAclsRequest(creations=[_creation(each) for each in _bindings(bindings)])
        if not request.creations:
            return

        async def attempt() -> CreateAclsResponse:
            return await self._cluster.call_any(CREATE_ACLS, request, CreateAclsResponse)

        answer = await self._persist(attempt)
        for creation, result in zip(request.creations, answer.results, strict=True):
            check(result.error_code, f"adding a rule of {creation.principal}", result.error_message)

    async def describe_acls(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        """Return the rules that match the filter, or all rules if there is no filter.

        Raises ClusterAuthorizationFailed, SecurityDisabled if a broker has no authorizer, or
        UnsupportedVersion if a rule has a code that this client does not recognise.

            await admin.describe_acls(AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH))
        """
        given = AclFilter() if wanted is None else _checked_filter(wanted)
        request = DescribeAclsRequest(
            resource_type_filter=given.resource_type,
            resource_name_filter=given.name,
            pattern_type_filter=given.pattern_type,
            principal_filter=given.principal,
            host_filter=given.host,
            operation=given.operation,
            permission_type=given.permission,
        )

        async def attempt() -> DescribeAclsResponse:
            answer = await self._cluster.call_any(DESCRIBE_ACLS, request, DescribeAclsResponse)
            check(answer.error_code, "describing rules", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        return [
            AclBinding(
                _pattern(each.resource_type, each.resource_name, each.pattern_type), _entry(acl)
            )
            for each in answer.resources
            for acl in each.acls
        ]

    async def delete_acls(self, filters: AclFilter | Iterable[AclFilter]) -> list[AclBinding]:
        """Remove the rules that match the filters, and return them.

        Raises the first KafkaError (ClusterAuthorizationFailed, or SecurityDisabled if a broker has
        no authorizer); rules that match the other filters are still removed.

            await admin.delete_acls(AclFilter(principal="User:alice"))
        """
        request = DeleteAclsRequest(filters=[_deletion(each) for each in _filters(filters)])
        if not request.filters:
            return []

        async def attempt() -> DeleteAclsResponse:
            return await self._cluster.call_any(DELETE_ACLS, request, DeleteAclsResponse)

        answer = await self._persist(attempt)
        # A rule that matches two filters is returned once.
        deleted: dict[AclBinding, None] = {}
        for result in answer.filter_results:
            check(result.error_code, "removing rules", result.error_message)
            for each in result.matching_acls:
                check(each.error_code, f"removing a rule of {each.principal}", each.error_message)
                pattern = _pattern(each.resource_type, each.resource_name, each.pattern_type)
                deleted[AclBinding(pattern, _entry(each))] = None
        return list(deleted)


def _bindings(given: object) -> list[AclBinding]:
    argument = "bindings"
    several = [given] if isinstance(given, AclBinding) else arguments.several(given, argument)
    return [_checked_binding(each, argument) for each in several]


def _checked_binding(given: object, argument: str) -> AclBinding:
    if not isinstance(given, AclBinding):
        raise TypeError(f"{argument}: each must be an AclBinding, not {type(given).__name__}")
    pattern, entry = given
    if not isinstance(pattern, Pattern) or not isinstance(entry, AclEntry):
        raise TypeError(f"{argument}: an AclBinding must have a Pattern and an AclEntry")
    _member(ResourceType, pattern.resource_type, argument)
    _member(PatternType, pattern.pattern_type, argument)
    _member(Operation, entry.operation, argument)
    _member(PermissionType, entry.permission, argument)
    for code in (pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission):
        if any(code is each for each in _FOR_FILTERS):
            kind = type(code).__name__
            # Compare by identity, because ANY and MATCH equal members of other enums by number.
            raise ValueError(f"{argument}: {kind}.{code.name} is for filters, not for rules")
    for text in (pattern.name, entry.principal, entry.host):
        if not arguments.text(text, argument):
            raise ValueError(f"{argument}: a rule must name its resource, principal and host")
    try:
        parse_principal(entry.principal)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None
    return given


def _filters(given: object) -> list[AclFilter]:
    several = [given] if isinstance(given, AclFilter) else arguments.several(given, "filters")
    return [_checked_filter(each, "filters") for each in several]


def _checked_filter(given: object, argument: str = "wanted") -> AclFilter:
    if not isinstance(given, AclFilter):
        raise TypeError(f"{argument}: must be an AclFilter, not {type(given).__name__}")
    _member(ResourceType, given.resource_type, argument)
    _member(PatternType, given.pattern_type, argument)
    _member(Operation, given.operation, argument)
    _member(PermissionType, given.permission, argument)
    for text in (given.name, given.principal, given.host):
        if text is not None:
            arguments.text(text, argument)
    return given


def _member(kind: type[IntEnum], value: object, argument: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{argument}: {value!r} must be one of {kind.__name__}")


def _creation(binding: AclBinding) -> AclCreation:
    pattern, entry = binding
    return AclCreation(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        resource_pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _deletion(wanted: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def _pattern(resource_type: int, name: str, pattern_type: int) -> Pattern:
    return Pattern(_known(ResourceType, resource_type), name, _known(PatternType, pattern_type))


def _entry(acl: AclDescription | DeleteAclsMatchingAcl) -> AclEntry:
    operation, permission = acl.operation, acl.permission_type
    return AclEntry(
        acl.principal, acl.host, _known(Operation, operation), _known(PermissionType, permission)
    )


def _known(kind: type[C], code: int) -> C:
    # Do not skip the rule, because an incomplete list would misrepresent what is protected.
    try:
        return kind(code)
    except ValueError:
        raise UnsupportedVersion(
            f"the brokers have a rule with {kind.__name__} {code}, which this client does not know"
        ) from None
