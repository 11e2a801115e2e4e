"""IncrementalAlterConfigs (key 44): changes individual configs of a resource (KIP-339).

Version 1 is flexible. The operations are 0 (SET), 1 (DELETE), 2 (APPEND) and 3 (SUBTRACT); the last
two can be used only for lists.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, Array


class IncrementalAlterableConfig(Message):
    name: str = field(STRING)
    config_operation: int = field(INT8)
    value: str | None = field(STRING, nullable="0+")


class IncrementalAlterConfigsResource(Message):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[IncrementalAlterableConfig] = field(Array(IncrementalAlterableConfig))


class IncrementalAlterConfigsRequest(Message, flexible="1+"):
    resources: list[IncrementalAlterConfigsResource] = field(Array(IncrementalAlterConfigsResource))
    validate_only: bool = field(BOOLEAN)


class IncrementalAlterConfigsResourceResponse(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


class IncrementalAlterConfigsResponse(Message, flexible="1+"):
    throttle_time_ms: int = field(INT32)
    responses: list[IncrementalAlterConfigsResourceResponse] = field(
        Array(IncrementalAlterConfigsResourceResponse)
    )
