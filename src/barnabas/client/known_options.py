"""Lists the options of all Kafka clients, any of which may appear in a client config file.

A file serves several programs, so a command accepts the options of every client and silently
ignores those that it does not use. It warns only about names unknown to every client of Kafka 3.9:
such a name is mistyped, and the intended option keeps its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from barnabas.client.security.config import SecurityConfig
from barnabas.client.unused_options import SECURITY_PREFIXES, TUNING

_KAFKAS: Final = frozenset(
    {
        "bootstrap_controllers",
        "bootstrap_servers",
        "group_protocol",
        "group_remote_assignor",
        "internal_leave_group_on_close",
        "internal_throw_on_fetch_stable_offset_unsupported",
        "max_block_ms",
        "partitioner_class",
        "partitioner_ignore_keys",
    }
)
"""Kafka's producer, consumer and admin options that none of our tables contain."""

_KNOWN: Final = frozenset(
    {
        *ClientConfig._fields,
        *ProducerConfig._fields,
        *ConsumerConfig._fields,
        *SecurityConfig._fields,
        *TUNING,
        *_KAFKAS,
    }
) - {"security"}


_PREFIXES: Final = (*SECURITY_PREFIXES, "config_providers_", "metrics_context_")
"""The prefixes of security options, which are rejected if unknown, and of plug-in options."""


def unknown_options(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each name that no client recognises, with the nearest known name."""
    for name in names:
        own = name.strip().replace(".", "_")
        if own in _KNOWN or own.startswith(_PREFIXES):
            continue
        from difflib import get_close_matches  # imported only for a warning

        near = get_close_matches(own.lower(), sorted(_KNOWN), n=1, cutoff=0.7)
        hint = f"; did you mean {near[0].replace('_', '.')}?" if near else ""
        yield f"{name} is not a client config and has no effect{hint}"
