"""DeleteAcls (key 31): remove the rules that match the filters (KIP-140).

Any broker can handle this request.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.broker.security.acl_requests import filter_of
from barnabas.broker.security.acl_store import AclStore, Deleted
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.security.acl_binding import AclFilter

_LISTS = Lists(("filters",), ("filter_results",))


def handle(context: Context, request: DeleteAclsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: DeleteAclsRequest) -> Outcome:
    wanted = [filter_of(each) for each in request.filters]
    try:
        if not context.is_allowed(CLUSTER_NAME):
            raise ClusterAuthorizationFailed
        acls = context.node.authorizer.acls
        if acls is None:
            raise SecurityDisabled("No Authorizer is configured.")
    except KafkaError as error:
        result = DeleteAclsFilterResult(error_code=error.code, error_message=str(error))
        return DeleteAclsResponse(filter_results=[result] * len(wanted))
    return _delete(acls, wanted)


async def _delete(acls: AclStore, wanted: list[AclFilter | None]) -> DeleteAclsResponse:
    outcomes = iter(await acls.delete([each for each in wanted if each is not None]))
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                # A filter with a code unknown to this broker is not an error. It matches nothing.
                matching_acls=[] if each is None else list(map(_matching, next(outcomes)))
            )
            for each in wanted
        ]
    )


def _matching(deleted: Deleted) -> DeleteAclsMatchingAcl:
    (pattern, entry), error = deleted
    matching = DeleteAclsMatchingAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
    if error is not None:
        matching.error_code, matching.error_message = error.code, str(error)
    return matching
