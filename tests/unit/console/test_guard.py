"""The names by which a console may be addressed."""

from __future__ import annotations

import pytest

from barnabas.console.guard import host_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8080", "localhost"),
        ("localhost.:80", "localhost"),
        ("[::1]:80", "::1"),
        ("[::1", "::1"),
        ("10.0.0.1:80", "10.0.0.1"),
        ("localhost:80@evil.example", "localhost"),
        ("", ""),
    ],
)
def test_a_host_header_names_a_host(host: str, name: str) -> None:
    assert host_name(host) == name
