"""Quotas in the lines of `kafka-configs.sh`."""

from __future__ import annotations

import pytest

from barnabas.cli.configs.quotas import java_double, quota_line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (1048576.0, "1048576.0"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (1e22, "1.0E22"),
    ],
)
def test_a_number_is_printed_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text


def test_se_5_a_line_names_user_and_client_id() -> None:
    assert quota_line((("client-id", None), ("user", "a")), {"request_percentage": 5.0}) == (
        "Quota configs for user-principal 'a', the default client-id are request_percentage=5.0"
    )
