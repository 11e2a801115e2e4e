"""DescribeClientQuotas (key 48): returns quotas of users, client ids and addresses (KIP-546).

Version 1 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, FLOAT64, INT8, INT16, INT32, STRING, Array


class ComponentData(Message):
    entity_type: str = field(STRING)
    match_type: int = field(INT8)  # 0: this name, 1: the default, 2: any name
    match: str | None = field(STRING, nullable="0+")


class DescribeClientQuotasRequest(Message, flexible="1+"):
    components: list[ComponentData] = field(Array(ComponentData))
    strict: bool = field(BOOLEAN)


class DescribedEntityData(Message):
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


class ValueData(Message):
    key: str = field(STRING)
    value: float = field(FLOAT64)


class DescribedEntryData(Message):
    entity: list[DescribedEntityData] = field(Array(DescribedEntityData))
    values: list[ValueData] = field(Array(ValueData))


class DescribeClientQuotasResponse(Message, flexible="1+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    entries: list[DescribedEntryData] | None = field(Array(DescribedEntryData), nullable="0+")
