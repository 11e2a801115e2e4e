"""DescribeConfigs (key 32): returns configs of topics, brokers and loggers, with their sources.

Version 1 adds sources and synonyms (KIP-226), version 3 adds types and documentation (KIP-569), and
version 4 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, Array


class DescribeConfigsResource(Message):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configuration_keys: list[str] | None = field(Array(STRING), nullable="0+")


class DescribeConfigsRequest(Message, flexible="4+"):
    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    # KIP-226: the synonyms are all sources in which a value is set, not only the one that applies.
    include_synonyms: bool = field(BOOLEAN, versions="1+")
    # KIP-569: whether to return a description of each config.
    include_documentation: bool = field(BOOLEAN, versions="3+")


class DescribeConfigsSynonym(Message):
    name: str = field(STRING, versions="1+")
    value: str | None = field(STRING, versions="1+", nullable="0+")
    source: int = field(INT8, versions="1+")


class DescribeConfigsResourceResult(Message):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
    read_only: bool = field(BOOLEAN)
    # KIP-226: version 0 has only `is_default`.
    config_source: int = field(INT8, versions="1+", ignorable=True, default=-1)
    is_default: bool = field(BOOLEAN, versions="0")
    is_sensitive: bool = field(BOOLEAN)
    synonyms: list[DescribeConfigsSynonym] = field(
        Array(DescribeConfigsSynonym), versions="1+", ignorable=True
    )
    # KIP-569: the code that Kafka uses for the type, or 0 if it is unknown.
    config_type: int = field(INT8, versions="3+", ignorable=True)
    documentation: str | None = field(STRING, versions="3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult))


class DescribeConfigsResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32)
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult))
