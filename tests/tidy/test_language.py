"""The rules of language that a machine can see: `python -m tests.tidy.language src` lists them."""

from __future__ import annotations

from collections import Counter

from tests.tidy.language import comment_lines, findings
from tests.tidy.source import sources

# At most so many places in src; each number may only go down.
MOST = {"fragment": 5, "as": 5, "whether": 30, "participle": 10}
# Code lines for each line of comment in src; may only go down.
LINES_PER_COMMENT = 39


def test_docstrings_are_sentences_and_names_say_what_they_do() -> None:
    counts = Counter(finding.rule for file in sources("src") for finding in findings(file))
    above = {rule: counts[rule] for rule, most in MOST.items() if counts[rule] > most}
    assert above == {}, f"allowed: {MOST}; `python -m tests.tidy.language src` lists the places"


def test_branches_that_are_not_obvious_have_comments() -> None:
    lines = sum(file.line_count for file in sources("src"))
    comments = sum(comment_lines(file) for file in sources("src"))
    assert lines / comments <= LINES_PER_COMMENT
