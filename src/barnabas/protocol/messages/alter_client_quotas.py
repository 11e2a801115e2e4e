"""AlterClientQuotas (key 49): sets and removes quotas of users, client ids and addresses.

It was added by KIP-546. Version 1 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, FLOAT64, INT16, INT32, STRING, Array


# KIP-546: the entity is a user, a client id, both, or an address.
class EntityData(Message):
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


class OpData(Message):
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOLEAN)


class EntryData(Message):
    entity: list[EntityData] = field(Array(EntityData))
    ops: list[OpData] = field(Array(OpData))


class AlterClientQuotasRequest(Message, flexible="1+"):
    entries: list[EntryData] = field(Array(EntryData))
    validate_only: bool = field(BOOLEAN)


class AlteredEntryData(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    entity: list[EntityData] = field(Array(EntityData))


class AlterClientQuotasResponse(Message, flexible="1+"):
    throttle_time_ms: int = field(INT32)
    entries: list[AlteredEntryData] = field(Array(AlteredEntryData))
