"""Writes a small database in MaxMind's DB format (version 2.0), as the providers publish them.

The format is a binary tree over the bits of an address, whose leaves point to encoded values:
https://maxmind.github.io/MaxMind-DB/
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_RECORD_BYTES = 4
_SEPARATOR = bytes(16)
_MARKER = b"\xab\xcd\xefMaxMind.com"
_TEXT, _UINT16, _UINT32, _MAP, _UINT64, _ARRAY = 2, 5, 6, 7, 9, 11

Node = list[Any]  # two children: a Node, the number of a value, or None


def write_database(path: Path, values: Mapping[str, Any]) -> Path:
    """Write a database that maps networks, such as 192.0.2.0/24, to values."""
    root: Node = [None, None]
    section = b""
    places: list[int] = []
    for number, (network, value) in enumerate(values.items()):
        places.append(len(section))
        section += _encode(value)
        _put(root, network, number)
    nodes = _nodes(root)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    tree = b""
    for node in nodes:
        for child in node:
            if child is None:
                record = len(nodes)
            elif isinstance(child, int):
                record = len(nodes) + len(_SEPARATOR) + places[child]
            else:
                record = numbers[id(child)]
            tree += record.to_bytes(_RECORD_BYTES, "big")
    about = {
        "node_count": (_UINT32, len(nodes)),
        "record_size": (_UINT16, 8 * _RECORD_BYTES),
        "ip_version": (_UINT16, 6),
        "database_type": "Countries",
        "languages": ["en"],
        "binary_format_major_version": (_UINT16, 2),
        "binary_format_minor_version": (_UINT16, 0),
        "build_epoch": (_UINT64, 1_764_000_000),
        "description": {"en": "Countries of documentation addresses"},
    }
    path.write_bytes(tree + _SEPARATOR + section + _MARKER + _encode(about))
    return path


def _put(root: Node, network: str, number: int) -> None:
    found = ipaddress.ip_network(network)
    # IPv4 addresses are in ::/96.
    shift = 96 if found.version == 4 else 0
    bits = f"{int(found.network_address):0128b}"[: shift + found.prefixlen]
    node = root
    for bit in bits[:-1]:
        if node[int(bit)] is None:
            node[int(bit)] = [None, None]
        node = node[int(bit)]
    node[int(bits[-1])] = number


def _nodes(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found += [child for child in node if isinstance(child, list)]
    return found


def _encode(value: Any) -> bytes:
    if isinstance(value, str):
        return _control(_TEXT, len(value.encode())) + value.encode()
    if isinstance(value, tuple):
        kind, number = value
        content: bytes = number.to_bytes((number.bit_length() + 7) // 8, "big")
        return _control(kind, len(content)) + content
    if isinstance(value, list):
        return _control(_ARRAY, len(value)) + b"".join(map(_encode, value))
    pairs = b"".join(_encode(name) + _encode(each) for name, each in value.items())
    return _control(_MAP, len(value)) + pairs


def _control(kind: int, size: int) -> bytes:
    extra = b""
    if size >= 29:
        assert size < 29 + 256
        size, extra = 29, bytes([size - 29])
    if kind < 8:
        return bytes([kind << 5 | size]) + extra
    return bytes([size, kind - 7]) + extra
