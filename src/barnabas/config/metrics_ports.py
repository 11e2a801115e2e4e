"""Chooses the metrics ports of several brokers on one machine.

`barnabas.metrics.port` is the port of broker 1; broker 2 uses the next port, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

METRICS_PORT = "barnabas.metrics.port"


def metrics_port(settings: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the setting for broker `number`, counted from 1, or "" if no metrics are served.

    A text that is not a number is returned unchanged, and the broker will reject it.
    """
    first = settings.get(METRICS_PORT, "").strip()
    if not first.isdecimal() or int(first) == 0:
        return {}
    return {METRICS_PORT: str(int(first) + number - 1)}
