"""Runs the command `barnabas`, choosing what to run before importing anything large.

`server start` is handled first, because a broker is ready in a tenth of a second, and importing the
libraries of the other commands would add half of that time.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

EXIT_OK, EXIT_FAILURE, EXIT_USAGE = 0, 1, 2
EXIT_INTERRUPTED = 130
"""A shell's exit code for a process that Ctrl-C has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code (0 done, 1 failed, 2 invalid command line)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        # sys.stdout is None under pythonw and in some services.
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        return EXIT_OK
    except KeyboardInterrupt:  # while the modules of the command are loaded
        return EXIT_INTERRUPTED
    return code


def drop_output() -> None:
    """Discard further output, which its reader (such as `head`) has closed.

    There must be no error, either at once or when the interpreter flushes the output at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    # Bypass click; see the module docstring.
    if words[:2] == ["server", "start"]:
        # Modules create many long-lived objects. The garbage collector would traverse them
        # repeatedly, which would take a tenth of the time until the broker is ready. The broker
        # enables it again.
        gc.disable()
        try:
            from barnabas.cli.server.start_command import start

            return start(words[2:])
        finally:
            gc.enable()
    if words[:2] == ["zookeeper", "start"]:
        gc.disable()
        try:
            from barnabas.cli.zookeeper.start_command import start as start_zookeeper

            return start_zookeeper(words[2:])
        finally:
            gc.enable()
    # No command of ours has a name with one of these prefixes.
    if words and words[0].startswith(("kafka-", "zookeeper-", "zkServer", "connect-", "trogdor")):
        from barnabas.cli.kafka.run import run as run_kafka_tool

        return run_kafka_tool(words)
    from barnabas.cli.app import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
