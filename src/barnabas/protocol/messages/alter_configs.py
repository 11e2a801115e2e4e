"""AlterConfigs (key 33): replaces all configs of a resource.

Configs that are omitted revert to defaults.

Version 2 is flexible. IncrementalAlterConfigs (KIP-339) has replaced this API, but old clients
still use it.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, Array


class AlterableConfig(Message):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


class AlterConfigsResource(Message):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


class AlterConfigsRequest(Message, flexible="2+"):
    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(BOOLEAN)


class AlterConfigsResourceResponse(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


class AlterConfigsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))
