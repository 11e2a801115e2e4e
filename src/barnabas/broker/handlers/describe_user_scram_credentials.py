"""DescribeUserScramCredentials (key 50): list the SCRAM mechanisms and iterations of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.scram_changes import NO_NAME
from barnabas.broker.security.scram_credentials import load_credentials
from barnabas.cluster.store import MetadataError
from barnabas.errors import (
    ClusterAuthorizationFailed,
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnknownServerError,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.security.scram import ScramCredential, kind_of


def handle(context: Context, request: DescribeUserScramCredentialsRequest) -> Outcome:
    if not context.is_allowed(CLUSTER_NAME):
        error = ClusterAuthorizationFailed()
        # Like Kafka, return the error once per requested user, without the name. A client that
        # asked for all users gets an empty list.
        return DescribeUserScramCredentialsResponse(
            error_code=error.code,
            error_message=str(error),
            results=[_failure("", error) for _ in request.users or ()],
        )
    return _describe(context, [each.name for each in request.users or ()])


async def _describe(context: Context, users: list[str]) -> DescribeUserScramCredentialsResponse:
    times = Counter(users)
    try:
        found = await load_credentials(context.node.store, list(filter(None, times)) or None)
    except MetadataError as error:
        failure = UnknownServerError(f"the metadata store does not answer: {error}")
        return DescribeUserScramCredentialsResponse(
            error_code=failure.code, error_message=str(failure)
        )
    return DescribeUserScramCredentialsResponse(
        results=[_result(user, times[user], found) for user in times or sorted(found)]
    )


def _result(
    user: str, times: int, found: Mapping[str, Mapping[str, ScramCredential]]
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return _failure(
            user,
            DuplicateResource(
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            ),
        )
    if not user:
        return _failure(user, ResourceNotFound(NO_NAME))
    if user not in found:
        return _failure(
            user,
            ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}"),
        )
    return DescribeUserScramCredentialsResult(
        user=user, credential_infos=_infos(found[user].items())
    )


def _infos(credentials: Iterable[tuple[str, ScramCredential]]) -> list[CredentialInfo]:
    return [
        CredentialInfo(mechanism=kind_of(mechanism), iterations=credential.iterations)
        for mechanism, credential in credentials
    ]


def _failure(user: str, error: KafkaError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user, error_code=error.code, error_message=str(error)
    )
