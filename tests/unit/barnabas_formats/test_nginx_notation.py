"""nginx's notation for an access log (LG-1, UX-4)."""

from __future__ import annotations

import re

import pytest

from barnabas.errors import ConfigError
from barnabas_formats.nginx_notation import field_of, is_of_nginx, translate

MAIN = """
    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"';
"""
TEXT = (
    '{client} - {user} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status} {bytes} "{referrer}"'
    ' "{agent}" "{_}"'
)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (MAIN, TEXT),
        ("log_format x escape=default \"$time_local \\\"$request\\\"\";",
         '{time:%d/%b/%Y:%H:%M:%S %z} "{request}"'),
        ("$time_iso8601 ${status}s {A}", "{time:%Y-%m-%dT%H:%M:%S%z} {status}s {{A}}"),
        ("$time_local $time_iso8601", "{time:%d/%b/%Y:%H:%M:%S %z} {_}"),
        ("$time_local $request_method $uri $args",
         "{time:%d/%b/%Y:%H:%M:%S %z} {method} {path} {query}"),
        ("$time_local $request_uri $args", "{time:%d/%b/%Y:%H:%M:%S %z} {path} {_}"),
        ("$time_local $request $request_uri $status $status",
         "{time:%d/%b/%Y:%H:%M:%S %z} {request} {_} {status} {_}"),
        ("$time_local $bytes_sent $body_bytes_sent", "{time:%d/%b/%Y:%H:%M:%S %z} {_} {bytes}"),
    ],
)  # fmt: skip
def test_lg_1_its_variables_are_fields(text: str, pattern: str) -> None:
    assert is_of_nginx(text)
    assert translate(text) == pattern


@pytest.mark.parametrize("text", ["{client} ${bytes} $10", "$HOME {message}", "$host {message}"])
def test_other_patterns_are_none_of_nginx(text: str) -> None:
    assert not is_of_nginx(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$remote_addr {status}", "nginx variables ($remote_addr) and fields ({status})"),
        ("$remote_addr $msec", "a line needs its time; add [$time_local]"),
        ('{"at":"$time_iso8601"}', "describe its keys with json instead of a pattern"),
    ],
)
def test_ux_4_what_cannot_be_translated(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(what)):
        translate(text)


def test_the_field_of_a_variable() -> None:
    assert field_of("remote_addr") == "client"
    assert field_of("upstream_addr") == ""
