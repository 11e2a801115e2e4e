"""Lists scripts and options that Kafka has removed, with their replacements and the new command
line. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from barnabas.cli.kafka.names import Replacement
from barnabas.cli.kafka.tool import NotCovered, Retired, Tool

_BROKER_PORT = 9092


def check_options(script: str, tool: Tool, words: Sequence[str]) -> None:
    """Reject retired options. Raises NotCovered, with the user's own line rewritten."""
    wanted = {name: tool.retired[name] for name, _ in _options(words) if name in tool.retired}
    if not wanted:
        return
    reasons = "; ".join(f"--{name}: {each.why}" for name, each in wanted.items())
    raise NotCovered(f"{reasons}. Type: {_line_to_type(script, _rewrite(words, wanted))}")


def replaced_line(replacement: Replacement, words: Sequence[str]) -> str:
    """Return why a script no longer exists, and the line to type instead."""
    if not replacement.tool:
        return replacement.why
    renamed = {
        old: Retired("", new, is_address=old in ("zookeeper", "zk"))
        for old, new in replacement.renamed
    }
    left = _rewrite(words, renamed)
    line = _line_to_type(replacement.tool, [*replacement.added, *left])
    return f"{replacement.why}. Type: {line}"


def broker_address(zookeeper: str) -> str:
    """Guess a broker's address: ZooKeeper's first machine, with the usual port."""
    host = zookeeper.partition("/")[0].partition(",")[0].rpartition(":")
    name = host[0] or host[2] or "localhost"
    return f"{name}:{_BROKER_PORT}"


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the names before any `=`, and the values after it."""
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            yield name, value if equals else None


def _rewrite(words: Sequence[str], retired: dict[str, Retired]) -> list[str]:
    """Return the words with each retired option replaced, but without repeating an option that is
    already present.
    """
    there = {name for name, _ in _options(words)}
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in retired:
            found.append(word)
            continue
        rule = retired[name]
        # The user may have forgotten the value, and the next option must not be mistaken for it.
        has_value = rule.takes_value and (equals or (left and not left[0].startswith("-")))
        if has_value and not equals:
            value = left.pop(0)
        # The replacement may already be on the line, and giving it twice would make the new line
        # invalid.
        if not rule.replacement or rule.replacement in there:
            continue
        found.append(f"--{rule.replacement}")
        if has_value:
            found.append(broker_address(value) if rule.is_address else value)
    return found


def _line_to_type(script: str, words: Sequence[str]) -> str:
    return shlex.join(["barnabas", f"{script}.sh", *words])
