"""Tells the story of a run in words, to show why it failed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from simulation.options import Options
from simulation.world import Line


def tell(options: Options, lines: Iterable[Line], last: int) -> str:
    """Return the options, the faults and the last lines."""
    text = [f"seed {options.seed}: {options.text()}", "faults:"]
    for fault in options.faults:
        text.append(
            f"  {fault.at_ms / 1000:8.3f} s  {fault.kind} {fault.first} {fault.second} "
            f"for {fault.for_ms} ms"
        )
    text.append("story:")
    text += [f"  {line}" for line in list(map(words, lines))[-last:]]
    return "\n".join(text)


def words(line: Line) -> str:
    return f"{line.at_ms / 1000:8.3f} s  {line.text.format(*line.values)}"


def digest(lines: Iterable[Line]) -> str:
    """Return a digest, the same for the same story."""
    sum_ = hashlib.sha256()
    for line in lines:
        sum_.update(words(line).encode())
    return sum_.hexdigest()
