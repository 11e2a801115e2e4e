"""AlterConfigs (key 33): replace all configs of a topic or broker.

Configs that are not listed are reset.

The Java client has deprecated this API since KIP-339, because concurrent clients undo each other's
changes.
"""

from __future__ import annotations

from typing import NoReturn

from barnabas.broker.configs.config_edit import replacement
from barnabas.broker.configs.config_resource import Alteration, ResourceKind, alter_all
from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import in_slices
from barnabas.errors import InvalidRequest
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(context: Context, request: AlterConfigsRequest) -> Outcome:
    return _alter(context, request)


async def _alter(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    wanted = [_alteration(resource) async for resource in in_slices(request.resources)]
    outcomes = await alter_all(context, wanted, request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=each.error_code,
                error_message=each.error_message,
                resource_type=each.kind,
                resource_name=each.name,
            )
            async for each in in_slices(outcomes)
        ]
    )


def _alteration(resource: AlterConfigsResource) -> Alteration:
    settings = [(config.name, config.value) for config in resource.configs]
    kind = resource.resource_type
    if kind == ResourceKind.BROKER_LOGGER:
        return Alteration(kind, resource.resource_name, _refuse)
    return Alteration(kind, resource.resource_name, lambda _: replacement(settings))


def _refuse(key_of: object) -> NoReturn:
    raise InvalidRequest(
        "AlterConfigs would remove all log levels; change them with IncrementalAlterConfigs"
    )
