"""`barnabas`: the one command. Dispatches before anything heavy is imported.

`server start` is handled first: a broker is ready in a tenth of a second, and importing the
libraries of the other commands alone would cost half of that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

EXIT_OK, EXIT_FAILURE, EXIT_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code (0 done, 1 failed, 2 the command line is wrong)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:2] == ["server", "start"]:
        from barnabas.cli.server.start_command import start

        return start(words[2:])
    if words and words[0].startswith(("kafka-", "zookeeper-", "connect-", "trogdor")):
        from barnabas.cli.kafka.run import run as run_kafka_tool

        return run_kafka_tool(words)
    from barnabas.cli.app import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
