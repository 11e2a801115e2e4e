"""Parses `--add retention.ms=1000,cleanup.policy=[compact,delete]` into config operations. Pure.

In Kafka's notation, commas separate pairs, and square brackets enclose a value that contains
commas. The outer brackets are not part of the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.client.admin.configs import ConfigOperation, ConfigOperationType


class BadChange(Exception):
    """Raised if the text is malformed; the message shows the correct form."""


def split_items(text: str) -> Iterator[str]:
    """Yield the items between commas, without surrounding blanks. A comma in brackets does not
    separate items.
    """
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        # Kafka's pattern does not count brackets, but splits well-formed text the same way.
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            raise BadChange(f"{text}: a ] without a [")
        if letter == "," and not depth:
            yield text[begin:at].strip()
            begin = at + 1
    if depth:
        raise BadChange(f"{text}: a [ without a ]")
    yield text[begin:].strip()


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Parse `k=v,k=[v,v]` texts into a dictionary. If a name is repeated, its last value is used.
    Raises BadChange.
    """
    found = {}
    for text in texts:
        for item in split_items(text):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals or not key:
                raise BadChange(f"{option} {item}: not KEY=VALUE, such as retention.ms=1000")
            if value.startswith("[") and value.endswith("]"):
                value = value[1:-1]
            found[key] = value
    return found


def parse_names(texts: Iterable[str], option: str) -> list[str]:
    """Parse `k,k` texts into a list without duplicates. Raises BadChange."""
    names = [name for text in texts for name in split_items(text)]
    for name in names:
        if not name or "=" in name:
            raise BadChange(f"{option} {name}: not the name of a config")
    return list(dict.fromkeys(names))


def operations(
    add: Iterable[str], delete: Iterable[str], append: Iterable[str], subtract: Iterable[str]
) -> list[ConfigOperation]:
    """Return the operations that these options describe. A config may occur only once. Raises
    BadChange."""
    found = [
        *_operations(ConfigOperationType.SET, parse_pairs(add, "--add")),
        *_operations(ConfigOperationType.APPEND, parse_pairs(append, "--append")),
        *_operations(ConfigOperationType.SUBTRACT, parse_pairs(subtract, "--subtract")),
        *(
            ConfigOperation(name, ConfigOperationType.DELETE)
            for name in parse_names(delete, "--delete")
        ),
    ]
    names: set[str] = set()
    for operation in found:
        # A broker may apply the operations in any order.
        if operation.name in names:
            raise BadChange(f"{operation.name} cannot be changed in two ways at once")
        names.add(operation.name)
    return found


def _operations(kind: ConfigOperationType, pairs: dict[str, str]) -> Iterator[ConfigOperation]:
    return (ConfigOperation(name, kind, value) for name, value in pairs.items())
