"""What `reassign` is asked to do: one thing at a time."""

from __future__ import annotations

import pytest

from barnabas.cli.main import EXIT_USAGE, main

ONCE = "choose one of --generate, --execute, --verify, --cancel and --list"


@pytest.mark.parametrize("words", ["", "--execute --list", "--list --verify"])
def test_none_or_two_actions_are_refused(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """UX-4: not the last of them done, and the others forgotten. No broker is asked."""
    assert main(["reassign", *words.split(), "--bootstrap-server", "127.0.0.1:1"]) == EXIT_USAGE
    assert capfd.readouterr().err == f"barnabas reassign: {ONCE}; see barnabas reassign --help\n"
