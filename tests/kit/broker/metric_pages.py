"""What a broker's registry of metrics has, read without its listener."""

from __future__ import annotations

import re

from barnabas import Broker
from barnabas.metrics import Registry
from barnabas.net.metrics_page import text
from tests.kit.broker.loops import inside

_SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (-?\d+\.\d+(?:e[+-]\d+)?)")


def samples(page: str) -> dict[str, float]:
    """The samples of a page by name, or by name and labels where there are some."""
    found = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            name, labels, value = sample.groups()
            key = f"{name}{{{labels}}}" if labels else name
            assert key not in found, f"two numbers for {key}"
            found[key] = float(value)
    return found


def page_of(registry: Registry) -> str:
    """All families, rendered at once: on the loop of the broker whose they are."""
    return text(family for read in registry for family in read())


def samples_of(broker: Broker) -> dict[str, float]:
    """The samples of a broker that runs in a thread of its own."""
    server = broker.server
    assert server is not None
    return samples(inside(broker, lambda: page_of(server.metrics)))
