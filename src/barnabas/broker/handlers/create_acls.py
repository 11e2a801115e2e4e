"""CreateAcls (key 30): add access control rules (KIP-140). Any broker can handle this request."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.broker.security.acl_requests import binding_of, check_creations
from barnabas.broker.security.acl_store import AclStore
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from barnabas.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.security.acl_binding import AclBinding

_LISTS = Lists(("creations",), ("results",))


def handle(context: Context, request: CreateAclsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: CreateAclsRequest) -> Outcome:
    try:
        if not context.is_allowed(CLUSTER_NAME):
            raise ClusterAuthorizationFailed
        acls = context.node.authorizer.acls
        if acls is None:
            raise SecurityDisabled("No Authorizer is configured.")
        check_creations(request.creations)
    except KafkaError as error:
        return CreateAclsResponse(results=[_result(error) for _ in request.creations])
    return _create(acls, request)


async def _create(acls: AclStore, request: CreateAclsRequest) -> CreateAclsResponse:
    bindings: list[AclBinding | KafkaError] = []
    for creation in request.creations:
        try:
            bindings.append(binding_of(creation))
        except KafkaError as error:
            # The error's frames reference the request, which would stay in memory until the
            # collector runs.
            bindings.append(error.with_traceback(None))
    valid = [each for each in bindings if isinstance(each, AclBinding)]
    outcomes = iter(await acls.create(valid))
    errors = [next(outcomes) if isinstance(each, AclBinding) else each for each in bindings]
    return CreateAclsResponse(results=list(map(_result, errors)))


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=str(error))
