"""Lost records: what is missing though nobody deleted it on purpose for this query.

A gap is not a loss. Compaction and transaction markers leave offsets without records *inside* the
log; a loss is an offset that the query still wanted *below* the log's start (retention, deleted
records), above its end (a topic deleted and made again), or in a partition that is gone.
"""

from __future__ import annotations

import logging

from barnabas.errors import BarnabasError

_log = logging.getLogger(__name__)


class DataLoss(BarnabasError):
    """Records that the query should have read no longer exist."""


def report_loss(text: str, *, fail_on_data_loss: bool) -> None:
    """Raise `DataLoss`, or log a warning if the user prefers to go on with what is there."""
    if fail_on_data_loss:
        raise DataLoss(
            f"{text}. To go on with what is there, set the option failOnDataLoss to false;"
            " to avoid it, keep records for longer (retention.ms, retention.bytes) or run the"
            " query more often"
        )
    _log.warning("%s; going on with what is there (failOnDataLoss=false)", text)
