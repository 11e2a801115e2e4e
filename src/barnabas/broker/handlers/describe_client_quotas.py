"""DescribeClientQuotas (key 48): list the quotas that are set in the metadata tree."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.quota_filter import Component, QuotaFilter
from barnabas.broker.quotas.stored_quotas import quotas_in
from barnabas.cluster.store import MetadataError
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, UnknownServerError
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedEntityData,
    DescribedEntryData,
    ValueData,
)
from barnabas.security.acl import CLUSTER_NAME


def handle(context: Context, request: DescribeClientQuotasRequest) -> Outcome:
    return _describe(context, request)


async def _describe(
    context: Context, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        if not context.is_allowed(CLUSTER_NAME):
            raise ClusterAuthorizationFailed("Cluster authorization failed.")
        entries = await _matching(context, request)
    except MetadataError as error:
        return _failure(UnknownServerError(f"the metadata store does not answer: {error}"))
    except KafkaError as error:
        return _failure(error)
    return DescribeClientQuotasResponse(entries=entries)


async def _matching(
    context: Context, request: DescribeClientQuotasRequest
) -> list[DescribedEntryData]:
    wanted = QuotaFilter(
        [(each.entity_type, Component(each.match_type, each.match)) for each in request.components],
        is_strict=request.strict,
    )
    return [
        DescribedEntryData(
            entity=[
                DescribedEntityData(entity_type=entity_type, entity_name=name)
                for entity_type, name in entity.items()
            ],
            values=[ValueData(key=key, value=value) for key, value in quotas.items()],
        )
        for entity, quotas in await quotas_in(context.node.store)
        if wanted.matches(entity)
    ]


def _failure(error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        # As in Kafka, return null rather than an empty list, because it is not known whether there
        # are any entries.
        error_code=error.code,
        error_message=str(error),
        entries=None,
    )
