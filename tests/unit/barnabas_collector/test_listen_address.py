"""The addresses of listeners."""

from __future__ import annotations

import pytest

from barnabas.errors import ConfigError
from barnabas_collector.listen_address import ListenAddress


@pytest.mark.parametrize(
    ("text", "default_port", "found"),
    [
        ("localhost:514", None, ("localhost", 514)),
        ("[::1]:514", None, ("::1", 514)),
        ("0.0.0.0", 4_318, ("0.0.0.0", 4_318)),
        ("0.0.0.0:0", 4_318, ("0.0.0.0", 0)),
        ("[::]", 4_318, ("::", 4_318)),
        ("[::]:5", 4_318, ("::", 5)),
        (":5", None, ("0.0.0.0", 5)),
        (":4318", 4_317, ("0.0.0.0", 4_318)),
    ],
)
def test_host_and_port(text: str, default_port: int | None, found: tuple[str, int]) -> None:
    assert ListenAddress.parse(text, default_port) == found


@pytest.mark.parametrize(
    ("text", "default_port"),
    [("here", None), (":", None), ("", None), ("here:65536", None), ("here:x", 1)],
)
def test_what_is_no_address(text: str, default_port: int | None) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        ListenAddress.parse(text, default_port)
