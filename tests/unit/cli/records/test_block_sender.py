"""UX-2: which options of `barnabas produce` leave it to us what a batch is."""

from __future__ import annotations

import pytest

from barnabas.cli.records.block_sender import suits


@pytest.mark.parametrize(
    ("given", "suited"),
    [
        ({}, True),
        ({"linger_ms": "5", "batch_size": "100000"}, True),
        ({"batch_size": "16"}, False),
        ({"partitioner_class": "round-robin"}, False),
        ({"max_request_size": "1000"}, False),
        ({"interceptor_classes": "some.module.Audit"}, False),
        ({"value_serializer": "json"}, False),
    ],
)
def test_records_that_are_looked_at_one_by_one_are_no_blocks(
    given: dict[str, str], suited: bool
) -> None:
    assert suits({"batch_size": 65_536, **given}, given) == suited
