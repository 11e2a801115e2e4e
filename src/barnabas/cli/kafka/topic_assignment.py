"""Parses `--replica-assignment 0:1,1:2`, which lists the brokers of each partition. Pure."""

from __future__ import annotations

import re

from barnabas.cli.kafka.options import BadCommandLine, Given


def assignment_of(given: Given) -> dict[int, list[int]] | None:
    """Return the brokers by partition, or None without the option. Raises BadCommandLine."""
    text = given.text("replica-assignment")
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}(:\d{1,9})*(,\d{1,9}(:\d{1,9})*)*", text.replace(" ", "")):
        raise BadCommandLine(
            f"--replica-assignment {text}: not broker ids, such as 0:1,1:2 (two partitions)"
        )
    found = {
        partition: [int(broker) for broker in brokers.split(":")]
        for partition, brokers in enumerate(text.replace(" ", "").split(","))
    }
    for partition, brokers in found.items():
        if len(set(brokers)) < len(brokers):
            raise BadCommandLine(
                f"--replica-assignment {text}: partition {partition} has a broker twice"
            )
    return found
