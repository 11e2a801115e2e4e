"""Describes producers for `/api/clients/producers`. Pure.

Leaders report the producers of each partition, and coordinators report the transactional ids. The
two are joined by the producer id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.console.client_look import ClientSnapshot
from barnabas.console.client_shapes import OpenPart, ProducerRow, Producers
from barnabas.console.query import Paging, in_order
from barnabas.console.snapshot import ClusterLook, TransactionLook
from barnabas.console.transactions import OPEN, hangs

_SOME: Final = 5
_MOST_OPEN: Final = 20
_MOST_IDS: Final = 20_000
_KEYS: Final[Mapping[str, Callable[[ProducerRow], Any]]] = {
    "id": lambda row: row["id"],
    "transactional_id": lambda row: row["transactional_id"],
    "written": lambda row: row["written_at"],
    "partitions": lambda row: row["partitions"],
}
SORTS: Final = tuple(_KEYS)


class ProducerBook:
    """Holds the producers from the latest polls, joined with the transactions."""

    def __init__(
        self,
        look: ClusterLook,
        clients: ClientSnapshot,
        transactions: TransactionLook,
        now_ms: int,
    ) -> None:
        self._look = look
        self._clients = clients
        self._rows: dict[int, ProducerRow] = {}
        self._add_states(clients)
        self._add_transactions(transactions, now_ms)
        self._error = "; ".join(filter(None, (clients.producers_error, transactions.error)))

    def page(self, wanted: Paging) -> Producers:
        """Return one page of the producers, sorted by id unless another sort order is given."""
        answers = self._clients.producers
        rows = [row for _, row in sorted(self._rows.items()) if _matches(row, wanted.search)]
        rows = in_order(rows, _KEYS[wanted.sort], descending=wanted.descending)
        return Producers(
            producers=list(wanted.rows(rows)),
            matching=len(rows),
            page=wanted.page,
            partitions=sum(len(topic.partitions) for topic in self._look.topics.values()),
            partitions_known=len(answers),
            denied=sum(each.is_denied for each in answers.values()),
            left_out=sum(each.left_out for each in answers.values()),
            error=self._error,
            looked_at=max((each.at_ms for each in answers.values()), default=None),
        )

    def _row(self, producer_id: int) -> ProducerRow:
        row = self._rows.get(producer_id)
        if row is None:
            row = self._rows[producer_id] = ProducerRow(
                id=producer_id,
                epoch=None,
                transactional_id=None,
                state=None,
                started=None,
                hangs=False,
                written_at=None,
                partitions=0,
                some=[],
                open=[],
            )
        return row

    def _add_states(self, clients: ClientSnapshot) -> None:
        for name, answer in sorted(clients.producers.items()):
            for state in answer.states:
                row = self._row(state.producer_id)
                row["epoch"] = max(state.producer_epoch, row["epoch"] or 0)
                row["written_at"] = max(state.last_timestamp_ms, row["written_at"] or 0)
                row["partitions"] += 1
                if len(row["some"]) < _SOME:
                    row["some"].append(str(name))
                if state.transaction_start_offset >= 0 and len(row["open"]) < _MOST_OPEN:
                    part = OpenPart(partition=str(name), start=state.transaction_start_offset)
                    row["open"].append(part)

    def _add_transactions(self, transactions: TransactionLook, now_ms: int) -> None:
        for listing in transactions.listings[:_MOST_IDS]:
            if listing.producer_id < 0:
                continue
            row = self._row(listing.producer_id)
            row["transactional_id"], row["state"] = listing.transactional_id, listing.state
            details = transactions.open.get(listing.transactional_id)
            if details is None or details.state not in OPEN:
                continue
            row["epoch"] = max(details.producer_epoch, row["epoch"] or 0)
            row["started"] = None if details.started_at_ms < 0 else details.started_at_ms
            row["hangs"] = hangs(details, now_ms)


def _matches(row: ProducerRow, search: str) -> bool:
    if not search:
        return True
    texts = (str(row["id"]), row["transactional_id"] or "", *row["some"])
    return any(search in text.casefold() for text in texts)
