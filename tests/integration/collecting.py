"""A process that follows a log into a topic until it is killed: what a service does, and only that.

python -m tests.integration.collecting SERVERS TOPIC LOG REGISTRY
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from barnabas_collector.registry import Registry
from barnabas_pipeline.collector import Collector, Follower

_PAUSE_S = 0.002


def main(servers: str, topic: str, log: str, registry: str) -> None:
    with (
        Collector(servers, topic, Registry(Path(registry))) as collector,
        Follower(collector, Path(log)) as follower,
    ):
        sys.stdout.write("following\n")
        sys.stdout.flush()
        while True:
            follower.poll()
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
