"""Translates nginx's notation for access logs into ours, so that users can paste a pattern from
their nginx configuration.

    log_format main '$remote_addr - $remote_user [$time_local] "$request" $status';
    {client} - {user} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status}

Both a whole `log_format` directive and only its text are accepted.
https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from barnabas.errors import ConfigError

_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "client": ("remote_addr", "proxy_protocol_addr"),
        "user": ("remote_user",),
        "time:%d/%b/%Y:%H:%M:%S %z": ("time_local",),
        "time:%Y-%m-%dT%H:%M:%S%z": ("time_iso8601",),
        "request": ("request",),
        "method": ("request_method",),
        "path": ("request_uri", "uri", "document_uri"),
        "query": ("args", "query_string"),
        "protocol": ("server_protocol",),
        "status": ("status",),
        "bytes": ("body_bytes_sent", "bytes_sent"),
        "referrer": ("http_referer",),
        "agent": ("http_user_agent",),
        "host": ("host", "http_host", "server_name"),
        "response_time_s": ("request_time",),
    }
)
"""Maps each field to the variables that contain it. The first variable that is present is used."""
_IN_REQUEST: Final = ("method", "path", "query", "protocol")
_VARIABLE: Final = re.compile(r"\$(?:\{(?P<braced>[a-z0-9_]+)\}|(?P<bare>[a-z0-9_]+))")
_OWN_FIELD: Final = re.compile(r"\{[a-z_]+(?::[^{}]*)?\}")
_DIRECTIVE: Final = re.compile(
    r"\s*log_format\s+\S+\s+(?:escape=(?P<escape>\w+)\s+)?(?P<text>.*)", re.DOTALL
)
_QUOTED: Final = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(['\"\\])")
_UNMISTAKABLE: Final = (
    *_VARIABLES["client"],
    *("time_local", "time_iso8601", "msec", "remote_user", "request", "status", "request_uri"),
    *("body_bytes_sent", "bytes_sent", "http_user_agent", "http_referer", "request_time"),
)


def is_of_nginx(text: str) -> bool:
    """Return whether a pattern contains nginx variables."""
    names = {each["braced"] or each["bare"] for each in _VARIABLE.finditer(text)}
    return not names.isdisjoint(_UNMISTAKABLE)


def field_of(variable: str) -> str:
    """Return our name for the field in an nginx variable, or "" if there is none."""
    return next((field for field, names in _VARIABLES.items() if variable in names), "")


def translate(text: str) -> str:
    """Return the pattern in our notation. Raises `ConfigError`, which states the problem."""
    text = _text_of_directive(text)
    variables = [*_VARIABLE.finditer(text)]
    first = variables[0][0]
    # Remove variables first, because `${name}` looks like a field after a dollar sign.
    if mixed := _OWN_FIELD.search(_VARIABLE.sub("", text)):
        raise ConfigError(
            f"the pattern {text!r} has nginx variables ({first}) and fields ({mixed[0]}):"
            " write either only variables or only fields"
        )
    if text.lstrip().startswith("{"):
        raise ConfigError(
            f"nginx writes JSON with {text!r}: describe its keys with json instead of a pattern,"
            ' such as json = { client = ["remote_addr"], ... }'
        )
    fields = _chosen([each["braced"] or each["bare"] for each in variables])
    if not any(field.startswith("time:") for field in fields.values()):
        raise ConfigError(
            f"the pattern {text!r}: a line needs its time; add [$time_local] to nginx's log_format"
        )
    parts: list[str] = []
    end = 0
    for each in variables:
        parts.append(_literal(text[end : each.start()]))
        # Only the first occurrence of a variable becomes a column.
        parts.append(f"{{{fields.pop(each['braced'] or each['bare'], '_')}}}")
        end = each.end()
    return "".join((*parts, _literal(text[end:])))


def _text_of_directive(text: str) -> str:
    """Return the text of a directive, with its quoted parts joined as nginx does."""
    rest = text.strip().removesuffix(";")
    if (match := _DIRECTIVE.fullmatch(rest)) is not None:
        rest = match["text"]
    parts: list[str] = []
    at = 0
    while found := _QUOTED.match(rest, at):
        parts.append(_ESCAPED.sub(r"\1", found[1] if found[1] is not None else found[2]))
        at = found.end()
    return "".join(parts) if parts and at == len(rest) else text


def _chosen(present: list[str]) -> dict[str, str]:
    """Return the field of each variable that becomes a column."""
    found: dict[str, str] = {}
    for field, names in _VARIABLES.items():
        if (name := next((name for name in names if name in present), None)) is not None:
            found[name] = field
    if "request" in present:
        found = {name: field for name, field in found.items() if field not in _IN_REQUEST}
    elif "request_uri" in found:  # it contains the query
        found = {name: field for name, field in found.items() if field != "query"}
    times = [name for name, field in found.items() if field.startswith("time:")]
    for name in times[1:]:
        del found[name]
    return found


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
