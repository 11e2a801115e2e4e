"""`barnabas server start` that kills itself, -9, at one exact point of a transaction.

    DIE_AT=<where>:<number>:<before|after>
        own:2:before       before it appends its second batch to __transaction_state
        control:3:after    right after its third marker is in a log

"After" means that the bytes have been written, and that nothing else has happened since.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from barnabas.broker.partitions.replica import Replica
from barnabas.cli.main import main
from barnabas.cluster.layout import TRANSACTION_TOPIC


def dying(append: Callable[..., Any], number: int, *, before: bool) -> Callable[..., Any]:
    """That append, which ends the process with its call of this number."""
    calls = 0

    def counted(replica: Replica, records: memoryview, now_ms: int) -> Any:
        nonlocal calls
        is_meant = append.__name__ == "append_control" or (
            replica.topic_partition.topic == TRANSACTION_TOPIC
        )
        calls += is_meant
        if is_meant and calls == number:
            if not before:
                append(replica, records, now_ms)
                replica.log.write_staged()
            os.kill(os.getpid(), signal.SIGKILL)
        return append(replica, records, now_ms)

    return counted


if __name__ == "__main__":
    where, nth, moment = os.environ["DIE_AT"].split(":")
    name = f"append_{where}"
    setattr(Replica, name, dying(getattr(Replica, name), int(nth), before=moment == "before"))
    sys.exit(main())
