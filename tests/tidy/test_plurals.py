"""A number and its noun agree: `1 record`, not `1 records`. Only `barnabas.counted` makes plurals.

Constants (`{MOST_RULES} rules`) are larger than one, and may stand before a plural; so may what is
too many at once, or fewer than at least one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_NOUNS: Final = (
    "attempts batches brokers errors files groups hits lines members messages "
    "offsets partitions records replicas requests responses rows rules scripts sessions times "
    "topics values views visitors"
).replace(" ", "|")
_COUNT: Final = r"(?:%d|\{(?!_?[A-Z][A-Z_]+\})[^{}=]+\})"
_PLURAL: Final = re.compile(
    rf"{_COUNT} (?:(?:more|new|later|other|invalid|failed|rotated|matching) )?(?:{_NOUNS})\b"
    r"(?!/| at once|: at least| (?:[a-z]+ )*of %d)"
)

_OTHERWISE: Final = (
    # In Kafka's own words.
    "src/barnabas/cli/kafka/",
    "src/barnabas/cli/perf/latency.py",
    "src/barnabas/cli/records/consume_command.py",
    # The lines of others, made up.
    "src/barnabas_pipeline/logs/generator.py",
)


@pytest.mark.parametrize("folder", ["barnabas", "pyspark_barnabas", "pyspark_barnabas_delta"])
def test_a_number_and_its_noun_agree(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "src" / folder).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(_OTHERWISE)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _PLURAL.search(line)
    ]
    assert not found, "count these by barnabas.counted:\n" + "\n".join(found)
