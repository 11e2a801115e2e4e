"""Reads and prints quotas in the notation of `kafka-configs.sh` (SE-5). Pure.

--add producer_byte_rate=1048576     --delete request_percentage

Quota configs for user-principal 'alice', the default client-id are producer_byte_rate=1048576.0
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from barnabas.cli.configs.changes import BadChange, parse_names, parse_pairs
from barnabas.client.admin.quota_admin import QuotaEntity

CLIENT_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
IP_QUOTAS: Final = ("connection_creation_rate",)
_WORDS: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

Alteration = dict[str, float | None]
"""Maps names of quotas to values. None removes the quota."""


def names_for(entity: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the names of the quotas that apply to an entity."""
    return IP_QUOTAS if "ip" in entity else CLIENT_QUOTAS


def alteration(
    entity: Mapping[str, str | None], add: Iterable[str], delete: Iterable[str]
) -> Alteration:
    """Return the change to an entity's quotas that the options describe. Raises BadChange."""
    found: Alteration = {}
    for name, value in parse_pairs(add, "--add").items():
        _check(name, entity, "--add")
        found[name] = parse_quota(name, value)
    for name in parse_names(delete, "--delete"):
        _check(name, entity, "--delete")
        if name in found:
            raise BadChange(f"{name} cannot be changed in two ways at once")
        found[name] = None
    return found


def parse_quota(name: str, value: str) -> float:
    """Return a number per second, or a percentage. Raises BadChange."""
    if not _NUMBER.fullmatch(value):
        raise BadChange(f"{name}={value}: not a number, such as {name}=1000")
    return float(value)


def _check(name: str, entity: Mapping[str, str | None], option: str) -> None:
    known = names_for(entity)
    if name not in known:
        raise BadChange(
            f"{option} {name}: not a quota of this owner; use one of {', '.join(known)}"
        )


def quota_line(entity: QuotaEntity, quotas: Mapping[str, float]) -> str:
    """Return the line that kafka-configs.sh prints for an entity's quotas."""
    names = dict(entity)
    whose = ", ".join(
        f"the default {word}" if names[kind] is None else f"{word} '{names[kind]}'"
        for kind, word in _WORDS.items()
        if kind in names
    )
    values = ", ".join(f"{name}={java_double(quotas[name])}" for name in in_javas_order(quotas))
    return f"Quota configs for {whose} are {values}"


def quota_values(found: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the quotas as values for JSON."""
    return [{"entity": dict(entity), "quotas": dict(each)} for entity, each in found.items()]


def in_javas_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order of a Java HashMap created for this many entries."""
    names = list(names)
    size = 1 << max(0, len(names) - 1).bit_length()
    # A HashMap doubles its table when the load factor exceeds 0.75.
    while len(names) > size * 3 // 4:
        size *= 2
    return sorted(names, key=lambda name: _java_hash(name) & (size - 1))


def _java_hash(name: str) -> int:
    code = 0
    for letter in name:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    # HashMap mixes the higher bits of the hash code into the lower ones.
    return code ^ code >> 16


def java_double(value: float) -> str:
    """Return a number in Java's format: 1048576.0, 1.0E7, 5.0E-4."""
    # Double.toString writes numbers in this range without an exponent.
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value)) if "e" not in repr(value) else f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int), "quotas are finite"
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = exponent + len(digits) - 1
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{power}"
