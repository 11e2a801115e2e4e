"""Lists scripts and options removed from Kafka, and rewrites command lines that use them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from barnabas.cli.kafka.names import Replacement
from barnabas.cli.kafka.tool import NotCovered, Retired, Tool

_BROKER_PORT = 9092


def check_options(script: str, tool: Tool, words: Sequence[str]) -> None:
    """Raise NotCovered for retired options, with the rewritten command line."""
    wanted = {name: tool.retired[name] for name, _ in _options(words) if name in tool.retired}
    if not wanted:
        return
    reasons = "; ".join(f"--{name}: {each.why}" for name, each in wanted.items())
    raise NotCovered(f"{reasons}. Type: {_line_to_type(script, _rewrite(words, wanted))}")


def replaced_line(replacement: Replacement, words: Sequence[str]) -> str:
    """Return why a script no longer exists, and the command line to use instead."""
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
    """Guess a broker's address, which consists of the first ZooKeeper host and Kafka's
    usual port.
    """
    host = zookeeper.partition("/")[0].partition(",")[0].rpartition(":")
    name = host[0] or host[2] or "localhost"
    return f"{name}:{_BROKER_PORT}"


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the option names, and any values after `=`."""
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            yield name, value if equals else None


def _rewrite(words: Sequence[str], retired: dict[str, Retired]) -> list[str]:
    """Return the words with retired options replaced. Options that are already present are not
    repeated.
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
        # If the user forgot the value, do not mistake the next option for it.
        has_value = rule.takes_value and (equals or (left and not left[0].startswith("-")))
        if has_value and not equals:
            value = left.pop(0)
        # The replacement may already be present. If it were repeated, the command line would be
        # invalid.
        if not rule.replacement or rule.replacement in there:
            continue
        found.append(f"--{rule.replacement}")
        if has_value:
            found.append(broker_address(value) if rule.is_address else value)
    return found


def _line_to_type(script: str, words: Sequence[str]) -> str:
    return shlex.join(["barnabas", f"{script}.sh", *words])
