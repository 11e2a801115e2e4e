"""AlterConfigs (key 33): replace all configs of a topic or of brokers; others return to defaults.

Deprecated in Java's client since KIP-339: two clients that alter at once undo each other's changes.
"""

from __future__ import annotations

from barnabas.broker.configs.config_edit import replacement
from barnabas.broker.configs.config_resource import Alteration, alter_all
from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(context: Context, request: AlterConfigsRequest) -> Outcome:
    return _alter(context, request)


async def _alter(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    wanted = [_alteration(resource) for resource in request.resources]
    outcomes = await alter_all(context, wanted, request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=each.error_code,
                error_message=each.error_message,
                resource_type=each.kind,
                resource_name=each.name,
            )
            for each in outcomes
        ]
    )


def _alteration(resource: AlterConfigsResource) -> Alteration:
    settings = [(config.name, config.value) for config in resource.configs]
    return Alteration(
        resource.resource_type, resource.resource_name, lambda _: replacement(settings)
    )
