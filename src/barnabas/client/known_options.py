"""Lists the options of all Kafka clients. Any of them may appear in a client's config file.

A config file may be shared by several programs, so a command accepts the options of every client
and silently ignores those that it does not use. It warns only about names that no client of Kafka
3.9 knows. Such a name is probably a typing error, which leaves the intended option at its default.
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
"""The options of Kafka's producer, consumer and admin client that are in none of our tables."""

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
"""The prefixes of security options, which are rejected if unknown, and those of plug-in options."""


def unknown_options(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each name that no client recognises, with the most similar known name."""
    for name in names:
        own = name.strip().replace(".", "_")
        if own in _KNOWN or own.startswith(_PREFIXES):
            continue
        from difflib import get_close_matches  # imported only for a warning

        near = get_close_matches(own.lower(), sorted(_KNOWN), n=1, cutoff=0.7)
        hint = f"; did you mean {near[0].replace('_', '.')}?" if near else ""
        yield f"{name} is not a client config and has no effect{hint}"
