"""Edits a resource's configs in response to AlterConfigs and IncrementalAlterConfigs.

AlterConfigs replaces all settings. IncrementalAlterConfigs sets and deletes individual settings,
and adds or removes items of a list (KIP-339). An item that is already in the list is not added
again. If the list has not been set, the edit starts from Kafka's default instead of the broker's
setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum

from barnabas.config import ConfigKey
from barnabas.errors import InvalidConfig, InvalidRequest
from barnabas.named_tuple import NamedTuple

Settings = Mapping[str, str]
Edit = Callable[[Settings], dict[str, str]]
"""Returns the new settings for a resource, given its current settings, or raises a KafkaError."""


class Operation(IntEnum):
    """An operation on a single setting. The values are the codes used on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """A requested change to one setting.

    `operation` is the code as received, which may be invalid.
    """

    name: str
    operation: int
    value: str | None


def replacement(settings: Sequence[tuple[str, str | None]]) -> Edit:
    """Return an edit for AlterConfigs, which removes every setting that is not listed."""
    changes = [Change(name, Operation.SET, value) for name, value in settings]
    _refuse_malformed(changes)
    wanted = {change.name: change.value or "" for change in changes}
    return lambda _: dict(wanted)


def increments(changes: Sequence[Change], key_of: Callable[[str], ConfigKey]) -> Edit:
    """Return an edit for IncrementalAlterConfigs.

    `key_of` returns the config key with the given name, or raises InvalidConfig.
    """
    _refuse_malformed(changes)

    def edit(current: Settings) -> dict[str, str]:
        wanted = dict(current)
        for change in changes:
            _carry_out(change, wanted, key_of)
        return wanted

    return edit


def _carry_out(change: Change, wanted: dict[str, str], key_of: Callable[[str], ConfigKey]) -> None:
    name, value = change.name, change.value or ""
    if change.operation == Operation.DELETE:
        # As in Kafka, it is not an error to delete a setting that is not set, even if its name is
        # unknown.
        wanted.pop(name, None)
        return
    key = key_of(name)
    if change.operation == Operation.SET:
        wanted[name] = value
        return
    if key.type != "list":
        verb = Operation(change.operation).name.lower()
        raise InvalidConfig(f"{name} is not a list, so {verb} is not possible; set it instead")
    # As in Kafka, start from the key's default, even if the broker's own settings differ.
    items = _items(wanted.get(name, key.text(key.default) or ""))
    if change.operation == Operation.APPEND:
        items += [item for item in _items(value) if item not in items]
    else:
        leaving = _items(value)
        items = [item for item in items if item not in leaving]
    wanted[name] = ",".join(items)


def _refuse_malformed(changes: Iterable[Change]) -> None:
    """Raise an error if any of the changes would be invalid for every kind of resource."""
    seen: set[str] = set()
    for name, operation, value in changes:
        if name in seen:
            raise InvalidRequest(f"{name} is given more than once; specify it only once")
        seen.add(name)
        if operation not in Operation.__members__.values():
            raise InvalidRequest(
                f"operation {operation} on {name} is unknown; use 0 (SET), 1 (DELETE), 2 (APPEND) "
                "or 3 (SUBTRACT)"
            )
        if value is None and operation != Operation.DELETE:
            raise InvalidRequest(f"{name} has no value (null); to restore the default, delete it")


def _items(text: str) -> list[str]:
    return list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
