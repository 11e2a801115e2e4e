"""Chooses a metrics port for each of several brokers on the same machine.

Broker 1 uses the port in `barnabas.metrics.port`, broker 2 uses the port after it, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

METRICS_PORT = "barnabas.metrics.port"


def metrics_port(settings: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the setting for broker `number` (counting from 1), or "" if metrics are not served.

    If the text is not a number, it is returned unchanged, and the broker will reject it.
    """
    first = settings.get(METRICS_PORT, "").strip()
    if not first.isdecimal() or int(first) == 0:
        return {}
    return {METRICS_PORT: str(int(first) + number - 1)}
