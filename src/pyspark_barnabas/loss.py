"""Data loss: records that a query should have read and that no longer exist.

A gap is not a loss. Compaction and transaction markers leave offsets without records *inside* the
log; a loss is an offset not read yet *below* the log's start (retention, deleted records), above
its end (a topic deleted and created again), or in a deleted partition.
"""

from __future__ import annotations

import logging

from barnabas.errors import BarnabasError

_log = logging.getLogger(__name__)


class DataLoss(BarnabasError):
    """Records that the query should have read no longer exist."""


def report_loss(text: str, *, fail_on_data_loss: bool) -> None:
    """Raise `DataLoss`, or log a warning if the user chose to go on without the records."""
    if fail_on_data_loss:
        raise DataLoss(
            f"{text}. To go on without these records, set the option failOnDataLoss to false;"
            " to avoid it, keep records for longer (retention.ms, retention.bytes) or run the"
            " query more often"
        )
    _log.warning("%s; going on without these records (failOnDataLoss=false)", text)
