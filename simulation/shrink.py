"""Reduces a failing run while the same rule still breaks, to a story with nothing superfluous."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simulation.machines import Machines
from simulation.options import Options
from simulation.run import Outcome, run


def shrink(failed: Outcome, machines: Machines | None = None, tries: int = 120) -> Outcome:
    """Return the smallest failing run found after at most `tries` runs."""
    assert failed.violation is not None
    rule = failed.violation.rule
    smallest = failed

    def still_fails(options: Options) -> bool:
        nonlocal smallest, tries
        tries -= 1
        outcome = run(options, machines)
        if outcome.violation is None or outcome.violation.rule != rule:
            return False
        smallest = outcome
        return True

    while tries > 0:
        before = smallest.options
        _fewer_faults(before, lambda options: tries > 0 and still_fails(options))
        for options in _simpler(smallest.options):
            if tries > 0:
                still_fails(options)
        if smallest.options == before:
            break
    return smallest


def _fewer_faults(options: Options, still_fails: Callable[[Options], bool]) -> None:
    """Leave out halves, quarters, ..., single faults."""
    faults = options.faults
    size = max(1, len(faults) // 2)
    while faults:
        start = 0
        while start < len(faults):
            fewer = faults[:start] + faults[start + size :]
            if still_fails(options._replace(faults=fewer)):
                faults = fewer
            else:
                start += size
        if size == 1:
            return
        size //= 2


def _simpler(options: Options) -> Iterator[Options]:
    last_ms = max((fault.at_ms for fault in options.faults), default=1000)
    if last_ms + 1000 < options.faults_end_at_ms:
        yield options._replace(faults_end_at_ms=last_ms + 1000)
    if options.producers > 1:
        yield options._replace(producers=1)
    if options.transactional:
        yield options._replace(transactional=0)
    if options.consumers > 1:
        yield options._replace(consumers=1)
    if options.topics > 1:
        yield options._replace(topics=1)
    if options.partitions > 1:
        yield options._replace(partitions=1)
