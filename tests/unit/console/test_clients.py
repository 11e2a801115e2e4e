"""IN-6: which of many quotas apply to a client."""

from __future__ import annotations

from barnabas.console.client_shapes import QuotaRow
from barnabas.console.clients import quotas_of


def quota(value: float, **names: str) -> QuotaRow:
    key = names.pop("key", "producer_byte_rate")
    return QuotaRow(
        user=names.get("user"),
        client_id=names.get("client_id"),
        ip=names.get("ip"),
        key=key,
        value=value,
    )


def values(client_id: str, host: str, *rows: QuotaRow) -> list[float]:
    both = [
        [row["value"] for row in quotas_of(client_id, host, each)] for each in (rows, rows[::-1])
    ]
    assert both[0] == both[1], "the order of the quotas does not matter"
    return both[0]


def test_in_6_a_quota_of_its_own_wins_over_that_of_all_others() -> None:
    rows = quota(1, client_id=""), quota(2, client_id="web"), quota(3, client_id="shop")
    assert values("web", "10.0.0.7", *rows) == [2]
    assert values("other", "10.0.0.7", *rows) == [1]


def test_in_6_each_key_is_chosen_on_its_own() -> None:
    rows = quota(1, client_id="", key="consumer_byte_rate"), quota(2, client_id="web")
    assert values("web", "10.0.0.7", *rows) == [1, 2]


def test_in_6_an_address_has_its_own_quota() -> None:
    key = "connection_creation_rate"
    rows = quota(1, ip="", key=key), quota(2, ip="10.0.0.7", key=key)
    assert values("web", "10.0.0.7", *rows) == [2]
    assert values("web", "10.0.0.8", *rows) == [1]


def test_in_6_a_quota_of_a_user_is_never_given_to_a_client() -> None:
    rows = (
        quota(1, user=""),
        quota(2, user="alice", client_id="web"),
        quota(3, user="", client_id=""),
    )
    assert values("web", "10.0.0.7", *rows) == []
