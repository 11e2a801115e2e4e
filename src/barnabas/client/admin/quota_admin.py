"""Implements the part of `Admin` that reads and changes quotas of users, client ids and
addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.errors import check
from barnabas.protocol.api import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT, _DEFAULT, _ANY = 0, 1, 2

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of a type (`user`, `client-id` or `ip`) and a name.

The name None stands for the default, which applies to all names without an entry of their own.
"""


class QuotaAdmin(AdminCalls):
    """Reads and changes quotas."""

    async def describe_client_quotas(
        self,
        entity: Mapping[str, str | None] | None = None,
        *,
        types: Collection[str] = (),
        is_strict: bool = False,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the configured quotas, by entity.

        `entity` maps each type (`user`, `client-id` or `ip`) to the name that an entity must have
        for this type; None stands for the default. `types` lists the types for which an entity may
        have any name. With `is_strict`, entities that also have other types are left out. Raises
        InvalidRequest.

            await admin.describe_client_quotas({"user": "alice"})
        """
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(
                    entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
                )
                for kind, name in (entity or {}).items()
            ]
            + [ComponentData(entity_type=kind, match_type=_ANY, match=None) for kind in types],
            strict=is_strict,
        )

        async def attempt() -> DescribeClientQuotasResponse:
            answer = await self._cluster.call_any(
                DESCRIBE_CLIENT_QUOTAS, request, DescribeClientQuotasResponse
            )
            check(answer.error_code, "quotas", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {
                each.key: each.value for each in entry.values
            }
            for entry in answer.entries or ()
        }

    async def alter_client_quotas(
        self,
        entity: Mapping[str, str | None],
        quotas: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set the quotas of an entity, by quota name. None removes a quota.

        `producer_byte_rate` and `consumer_byte_rate` are in bytes per second, `request_percentage`
        in percent of a core, and `controller_mutation_rate` in partitions per second. An `ip` has
        only `connection_creation_rate`, in connections per second. Raises InvalidRequest.

            await admin.alter_client_quotas({"user": "alice"}, {"producer_byte_rate": 1_000_000})
        """
        request = AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    ops=[
                        # 0 is a valid quota; only None removes a quota.
                        OpData(key=key, value=float(value or 0), remove=value is None)
                        for key, value in quotas.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )

        async def attempt() -> None:
            answer = await self._cluster.call_any(
                ALTER_CLIENT_QUOTAS, request, AlterClientQuotasResponse
            )
            (entry,) = answer.entries
            check(entry.error_code, f"quotas of {dict(entity)}", entry.error_message)

        await self._persist(attempt)
