"""Checks the arguments of `Admin`'s methods. A single name is treated as a list of one. Pure.

As in `client.arguments`, an invalid argument raises a TypeError or ValueError that names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.client import arguments
from barnabas.client.admin.configs import ConfigOperation, ConfigOperationType, ConfigResource
from barnabas.types import TopicPartition

Names = str | Iterable[str]
"""One or more names of topics, groups or transactions."""

ConfigText = str | int | float | bool | Sequence[str]
"""A config's value. Numbers and booleans are converted to text, and a sequence to a Kafka list."""

ConfigOperations = ConfigOperation | Iterable[ConfigOperation] | Mapping[str, ConfigText | None]
"""Changes to configs. A mapping assigns a value to each name; None restores the default."""

_INT32_MIN = -(2**31)


def names(value: object, argument: str) -> list[str]:
    """Return one or more names as a list, in the given order."""
    given = [value] if isinstance(value, str) else arguments.several(value, argument)
    return [arguments.text(name, argument) for name in given]


def partitions(value: object, argument: str = "partitions") -> list[TopicPartition]:
    """Return one or more partitions as a list. Each may be a TopicPartition or a plain pair."""
    if isinstance(value, str):
        return arguments.topic_partitions(value, argument)  # raises, because it is not a list
    return arguments.partitions([value], argument)


def brokers(value: object, argument: str) -> list[int]:
    """Return the broker ids."""
    return [
        arguments.whole_number(each, argument, most=arguments.INT32_MAX)
        for each in arguments.several(value, argument)
    ]


def producer_ids(value: object) -> list[int]:
    """Return one or more producer ids as a list."""
    given = [value] if isinstance(value, int) else arguments.several(value, "producer_ids")
    return [arguments.whole_number(each, "producer_ids") for each in given]


def numbers_by_partition(value: object, argument: str, least: int) -> dict[TopicPartition, int]:
    """Return a mapping of partitions to offsets or timestamps, none of them below `least`."""
    return {
        name: arguments.whole_number(number, argument, least=least)
        for name, number in arguments.by_partition(value, argument).items()
    }


def brokers_by_partition(
    value: object, argument: str = "replicas"
) -> dict[TopicPartition, list[int]]:
    """Return a mapping of partitions to broker ids."""
    return {
        name: brokers(given, argument)
        for name, given in arguments.by_partition(value, argument).items()
    }


def count(value: object, argument: str) -> int:
    """Return a count, where -1 selects the broker's default. The broker rejects invalid counts."""
    return arguments.whole_number(value, argument, _INT32_MIN, arguments.INT32_MAX)


def config_texts(configs: object, argument: str) -> dict[str, str]:
    """Return configs as text: `True` becomes `true`, and sequences are joined with commas."""
    if not isinstance(configs, Mapping):
        raise TypeError(f"{argument}: must be a mapping of names, not {type(configs).__name__}")
    return {
        arguments.text(name, argument): config_text(name, value, argument)
        for name, value in configs.items()
    }


def config_text(name: str, value: object, argument: str) -> str:
    """Return the value of a config as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise TypeError(
        f"{argument}: the value of {name} must be text, a number, True, False or a list of "
        f"strings, not {type(value).__name__}"
    )


def resource(value: object) -> ConfigResource:
    """Return the resource after checking its type."""
    if not isinstance(value, ConfigResource):
        raise TypeError(f"resource: must be a ConfigResource, not {type(value).__name__}")
    return value


def operations(value: object) -> list[ConfigOperation]:
    """Return config operations as a list. A mapping sets values, and None restores a default."""
    argument = "operations"
    if isinstance(value, Mapping):
        return [
            ConfigOperation(arguments.text(name, argument), ConfigOperationType.DELETE)
            if given is None
            else ConfigOperation(
                arguments.text(name, argument), value=config_text(name, given, argument)
            )
            for name, given in value.items()
        ]
    given = [value] if isinstance(value, ConfigOperation) else arguments.several(value, argument)
    return [_operation(each, argument) for each in given]


def _operation(value: object, argument: str) -> ConfigOperation:
    if not isinstance(value, ConfigOperation):
        kind = type(value).__name__
        raise TypeError(f"{argument}: each must be a ConfigOperation, not {kind}")
    name, op, given = value
    text = None if given is None else config_text(name, given, argument)
    return ConfigOperation(arguments.text(name, argument), ConfigOperationType(op), text)
