"""Quotas by our own admin client."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import Broker
from barnabas.client import Admin
from barnabas.errors import InvalidRequest

pytestmark = pytest.mark.secured


def test_se_5_quotas_are_set_described_and_removed() -> None:
    async def scenario(servers: str) -> None:
        async with Admin(servers) as admin:
            alice = {"user": "alice", "client-id": None}
            await admin.alter_client_quotas(alice, {"producer_byte_rate": 1_000_000})
            await admin.alter_client_quotas({"user": "bob"}, {"request_percentage": 50.5})
            found = await admin.describe_client_quotas()
            assert found == {
                (("user", "alice"), ("client-id", None)): {"producer_byte_rate": 1_000_000.0},
                (("user", "bob"),): {"request_percentage": 50.5},
            }
            assert len(await admin.describe_client_quotas({"user": "alice"})) == 1
            assert not await admin.describe_client_quotas({"user": "alice"}, is_strict=True)
            await admin.alter_client_quotas(alice, {"producer_byte_rate": None})
            assert not await admin.describe_client_quotas(alice)
            with pytest.raises(InvalidRequest, match="Invalid configuration key colour"):
                await admin.alter_client_quotas({"user": "bob"}, {"colour": 1})

    with Broker() as broker:
        asyncio.run(scenario(broker.bootstrap_servers))
