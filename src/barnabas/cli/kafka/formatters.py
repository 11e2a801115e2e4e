"""Looks up Kafka's message formatters by their 2.3 and 3.9 names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from barnabas.cli.kafka.json_formatters import JSON_FORMATTERS, JsonFormatter
from barnabas.cli.kafka.message_layout import Layout, default_layout, nothing
from barnabas.cli.kafka.tool import NotCovered
from barnabas.cli.records.layout import template_layout

DEFAULT: Final = "kafka.tools.DefaultMessageFormatter"
_OLD_PACKAGE: Final = "kafka.tools."
_NEW_PACKAGE: Final = "org.apache.kafka.tools.consumer."
_DEFAULTS: Final = ("DefaultMessageFormatter", "LoggingMessageFormatter")
_NOTHING: Final = "NoOpMessageFormatter"
_TEMPLATES: Final = {
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter": "offsets",
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter": "groups",
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter": "transactions",
}
"""Maps each formatter for an internal topic to our format."""


def layout_of(name: str, properties: Mapping[str, str]) -> Layout:
    """Return the layout for a formatter. Raises NotCovered or BadCommandLine."""
    own = _own_name(name)
    if own in _DEFAULTS:
        return default_layout(properties)
    # The formatters for internal topics have no properties.
    if is_json(name):
        return JsonFormatter(own)
    return nothing if own == _NOTHING else template_layout(template_of(name))


def is_json(name: str) -> bool:
    """Return whether this is a 3.9 formatter that prints an internal topic as JSON."""
    return name.removeprefix(_NEW_PACKAGE) in JSON_FORMATTERS and name.startswith(_NEW_PACKAGE)


def is_default(name: str) -> bool:
    """Return whether this formatter prints the parts that the properties select."""
    return _own_name(name) in _DEFAULTS


def template_of(name: str) -> str:
    """Return our format for an internal topic's formatter. Raises NotCovered for any other."""
    if name in _TEMPLATES:
        return _TEMPLATES[name]
    if is_json(name):
        raise NotCovered(
            f"--formatter {name}: our command has no such format; without --explain, this line "
            "runs unchanged"
        )
    raise NotCovered(
        f"--formatter {name}: Java classes cannot be run; use {DEFAULT}, {_OLD_PACKAGE}{_NOTHING}, "
        f"{', '.join(_TEMPLATES)}, and {', '.join(JSON_FORMATTERS)} of {_NEW_PACKAGE[:-1]}"
    )


def warn_if_old(name: str) -> None:
    """Print Kafka's warning if the formatter's name is outdated."""
    own = _own_name(name)
    # 3.9 moved its formatters to another Java package, but accepts the old names with a warning.
    if name == f"{_OLD_PACKAGE}{own}" and own in (*_DEFAULTS, _NOTHING):
        click.echo(
            f"WARNING: {name} is deprecated and will be removed in the next major release. "
            f"Please use {_NEW_PACKAGE}{own} instead",
            err=True,
        )


def _own_name(name: str) -> str:
    """Return the name without its package if the package is Kafka's. Otherwise, return it
    unchanged.
    """
    return name.removeprefix(_NEW_PACKAGE).removeprefix(_OLD_PACKAGE)
