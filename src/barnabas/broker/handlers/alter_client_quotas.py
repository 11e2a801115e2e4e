"""AlterClientQuotas (key 49): set or remove quotas.

The response is sent once the quotas apply on this broker.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.quota_alteration import Change, edit_of, path_of
from barnabas.broker.runtime.slices import in_slices
from barnabas.errors import ClusterAuthorizationFailed, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
    EntryData,
)
from barnabas.security.acl import CLUSTER_NAME


def handle(context: Context, request: AlterClientQuotasRequest) -> Outcome:
    return _alter_all(context, request)


async def _alter_all(
    context: Context, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    is_allowed = context.is_allowed(CLUSTER_NAME)
    entries = []
    async for entry in in_slices(request.entries):
        answer = AlteredEntryData(error_message=None, entity=entry.entity)
        try:
            if not is_allowed:
                raise ClusterAuthorizationFailed("Cluster authorization failed.")
            await _alter(context, entry, validate_only=request.validate_only)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, str(error)
        entries.append(answer)
    return AlterClientQuotasResponse(entries=entries)


async def _alter(context: Context, entry: EntryData, *, validate_only: bool) -> None:
    path = path_of([(part.entity_type, part.entity_name) for part in entry.entity])
    changes = [Change(op.key, None if op.remove else op.value) for op in entry.ops]
    await context.node.dynamic_config.alter_entity(
        path, edit_of(path, changes), validate_only=validate_only
    )
