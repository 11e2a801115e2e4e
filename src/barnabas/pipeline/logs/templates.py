"""The templates of messages, learnt by Drain (He et al., ICWS 2017) as `drain3` has it.

A template is a masked message in which words that differ from line to line have become `<*>`. One
that is known is recognised without learning; only the driver learns, in the order of the log, so a
template has one id for all tasks and for ever. The id is a hash of the format and the message that
the template began with: the same log gives the same ids again.

Templates are rows of a table. From them the tree in which Drain searches is built anew: it depends
on what each template began with, and on their order.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from drain3.drain import Drain, LogCluster  # type: ignore[import-untyped]

_log = logging.getLogger(__name__)

WILDCARD: Final = "<*>"
MOST: Final = 10_000
"""Templates of a format; lines that would need another one have none."""
# Chosen on the labelled samples of four systems; see docs/system-logs.md.
_DEPTH: Final = 5
_SIMILARITY: Final = 0.7


class Template(NamedTuple):
    id: str
    number: int
    format: str
    began: str
    text: str

    @property
    def wildcards(self) -> int:
        return self.text.split().count(WILDCARD)


class Templates:
    """Those that are known; travels pickled to the tasks."""

    def __init__(self, known: Iterable[Template] = ()) -> None:
        self._drains: dict[str, Drain] = {}
        self._by_cluster: dict[tuple[str, int], Template] = {}
        self._next_number = 0
        for template in sorted(known, key=lambda each: each.number):
            drain = self._drain(template.format)
            drain.clusters_counter += 1
            cluster = LogCluster(template.began.split(), drain.clusters_counter)
            drain.id_to_cluster[cluster.cluster_id] = cluster
            drain.add_seq_to_prefix_tree(drain.root_node, cluster)
            cluster.log_template_tokens = tuple(template.text.split())
            self._by_cluster[template.format, cluster.cluster_id] = template
            self._next_number = template.number + 1

    def find(self, format_name: str, masked: str) -> str | None:
        """The id of the known template that a masked message fits; None if there is none."""
        drain = self._drains.get(format_name)
        cluster = None if drain is None else drain.match(masked)
        return None if cluster is None else self._by_cluster[format_name, cluster.cluster_id].id

    def learn(self, format_name: str, masked: str) -> Template | None:
        """The template of a masked message, made new or more general where it has to be.

        None where there are `MOST` of its format and none fits.
        """
        drain = self._drain(format_name)
        cluster = drain.match(masked)
        if cluster is None:
            if drain.clusters_counter >= MOST:
                return None
            cluster, _ = drain.add_log_message(masked)
        place = (format_name, cluster.cluster_id)
        text = cluster.get_template()
        known = self._by_cluster.get(place)
        if known is None:
            began = " ".join(masked.split())
            known = Template(_id(format_name, began), self._next_number, format_name, began, text)
            self._next_number += 1
            if drain.clusters_counter == MOST:
                _log.warning("%s has %d templates: no more are learnt", format_name, MOST)
        self._by_cluster[place] = known._replace(text=text)
        return self._by_cluster[place]

    def _drain(self, format_name: str) -> Drain:
        found = self._drains.get(format_name)
        if found is None:
            found = Drain(depth=_DEPTH, sim_th=_SIMILARITY, param_str=WILDCARD)
            self._drains[format_name] = found
        return found


def _id(format_name: str, began: str) -> str:
    return hashlib.sha256(f"{format_name} {began}".encode()).hexdigest()[:12]
