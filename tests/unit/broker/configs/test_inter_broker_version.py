"""From which inter.broker.protocol.version on the controller is asked for ISRs."""

from __future__ import annotations

import pytest

from barnabas.broker.configs.inter_broker_version import writes_isrs
from barnabas.errors import ConfigError


@pytest.mark.parametrize(
    ("version", "writes"),
    [
        ("0.8.0", True),
        ("0.10.2-IV0", True),
        ("2.6", True),
        ("2.6.3", True),
        ("2.7-IV0", True),
        ("2.7-IV1", True),
        ("2.7-IV2", False),
        ("2.7", False),
        ("2.7.1", False),
        ("2.8-IV0", False),
        ("3.0-IV1", False),
        (" 3.9-IV0 ", False),
        ("4.0", False),
    ],
)
def test_leaders_write_below_2_7_iv2(version: str, writes: bool) -> None:
    """RE-9"""
    assert writes_isrs(version) is writes


@pytest.mark.parametrize("version", ["", "3", "latest", "2.7-IV", "2.7-iv2", "v2.6", "2.6 2.7"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"inter\.broker\.protocol\.version="):
        writes_isrs(version)
