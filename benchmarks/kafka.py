"""The workloads with a real Kafka 3.9.1 beside Barnabas, in turn, in one run.

    python -m benchmarks.kafka [--only WORD] [--scale S] [--rounds N] [--json FILE]

Kafka's jars come through Maven, its ZooKeeper is among them; 1 GB heap, G1. See `workloads`.
"""

from __future__ import annotations

import sys

import pytest

from benchmarks import workloads


def main() -> None:
    try:
        workloads.run(workloads.arguments().parse_args(), with_kafka=True)
    except pytest.skip.Exception as missing:
        sys.exit(f"no Kafka to compare with: {missing}")


if __name__ == "__main__":
    main()
