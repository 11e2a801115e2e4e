"""Where each of several brokers on one machine serves its metrics: on a port of its own.

`barnabas.metrics.port` of all of them is that of broker 1; broker 2 takes the next one, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

METRICS_PORT = "barnabas.metrics.port"


def metrics_port(settings: Mapping[str, str], number: int) -> dict[str, str]:
    """The setting for broker `number`, counted from 1; nothing where none is to serve any.

    What is no number is left as it is, for the broker to refuse.
    """
    first = settings.get(METRICS_PORT, "").strip()
    if not first.isdecimal() or int(first) == 0:
        return {}
    return {METRICS_PORT: str(int(first) + number - 1)}
