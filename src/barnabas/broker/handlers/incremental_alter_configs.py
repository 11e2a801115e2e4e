"""IncrementalAlterConfigs (key 44): change individual configs of topics or brokers (KIP-339)."""

from __future__ import annotations

from barnabas.broker.configs.broker_loggers import level_edit
from barnabas.broker.configs.config_edit import Change, increments
from barnabas.broker.configs.config_resource import Alteration, ResourceKind, alter_all
from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import in_slices
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


def handle(context: Context, request: IncrementalAlterConfigsRequest) -> Outcome:
    return _alter(context, request)


async def _alter(
    context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    wanted = [_alteration(resource) async for resource in in_slices(request.resources)]
    outcomes = await alter_all(context, wanted, request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=each.error_code,
                error_message=each.error_message,
                resource_type=each.kind,
                resource_name=each.name,
            )
            async for each in in_slices(outcomes)
        ]
    )


def _alteration(resource: IncrementalAlterConfigsResource) -> Alteration:
    changes = [
        Change(config.name, config.config_operation, config.value) for config in resource.configs
    ]
    kind = resource.resource_type
    if kind == ResourceKind.BROKER_LOGGER:
        return Alteration(kind, resource.resource_name, lambda _: level_edit(changes))
    return Alteration(kind, resource.resource_name, lambda key_of: increments(changes, key_of))
