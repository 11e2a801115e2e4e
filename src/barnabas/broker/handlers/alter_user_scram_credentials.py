"""AlterUserScramCredentials (key 51): set and delete the SCRAM credentials of users.

Only the controller handles this request. It responds once its own listeners use the new
credentials. The other brokers learn of the change through watches.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.scram_changes import changes_of
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, NotController
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.security.acl import CLUSTER_NAME


def handle(context: Context, request: AlterUserScramCredentialsRequest) -> Outcome:
    users = dict.fromkeys(
        [
            *(each.name for each in request.deletions),
            *(each.name for each in request.upsertions),
        ]
    )
    # As in Kafka, check this before authorization, because any client must be able to find the
    # controller.
    if not context.node.controller.is_active:
        return _answer(dict.fromkeys(users, NotController()))
    if not context.is_allowed(CLUSTER_NAME):
        return _answer(dict.fromkeys(users, ClusterAuthorizationFailed()))
    return _alter(context, request)


async def _alter(
    context: Context, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    changes, errors = changes_of(request)
    outcomes: dict[str, KafkaError | None] = dict(errors)
    for user, change in changes.items():
        outcomes[user] = None
        try:
            await context.node.dynamic_config.alter_user(user, change.edit)
        except KafkaError as error:
            outcomes[user] = error.with_traceback(None)
    return _answer(outcomes)


def _answer(outcomes: dict[str, KafkaError | None]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user)
            if error is None
            else AlterUserScramCredentialsResult(
                user=user, error_code=error.code, error_message=str(error)
            )
            for user, error in outcomes.items()
        ]
    )
