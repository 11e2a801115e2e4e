"""Learns the templates of messages with Drain (He et al., ICWS 2017), as implemented in `drain3`.

A template is a masked message in which variable words have become `<*>`. A known template is
recognised without learning. Only the driver learns, in the order of the log, so a template always
has the same id in all tasks. The id is a hash of the format and the template's first message, so
the same log always yields the same ids.

Templates are stored as rows of a table. Drain's search tree is rebuilt from these rows; it depends
on each template's first message and on the order of the templates.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from drain3.drain import Drain, LogCluster  # type: ignore[import-untyped]

from barnabas_pipeline.logs.token_tree import WILDCARD, TokenTree

_log = logging.getLogger(__name__)

MOST: Final = 5_000
"""The maximum number of templates for a format; lines that would need another get none."""
# Chosen using the labelled samples of four systems; see docs/system-logs.md.
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
    """Holds the known templates; it is sent pickled to the tasks."""

    def __init__(self, known: Iterable[Template] = ()) -> None:
        self._of_format: dict[str, _OfFormat] = {}
        self._next_number = 0
        for template in sorted(known, key=lambda each: each.number):
            self._format(template.format).restore(template)
            self._next_number = template.number + 1

    def find(self, format_name: str, masked: str) -> str | None:
        """Return the id of the known template that a masked message matches, or None if there is
        none."""
        known = self._of_format.get(format_name)
        found = None if known is None else known.find(masked)
        return None if found is None else found.id

    def learn(self, format_name: str, masked: str) -> Template | None:
        """Return the template of a masked message, creating or generalising it if necessary.

        Returns None if its format has `MOST` templates and none matches.
        """
        known = self._format(format_name)
        found = known.find(masked)
        if found is None and len(known) < MOST:
            found = known.learn(masked, self._next_number)
            self._next_number = max(self._next_number, found.number + 1)
            if len(known) == MOST:
                _log.warning("%s has %d templates: no more are learnt", format_name, MOST)
        return found

    def _format(self, name: str) -> _OfFormat:
        return self._of_format.setdefault(name, _OfFormat(name))


class _OfFormat:
    """Holds one format's templates: Drain's tree learns them, and the tree of words finds them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drain = Drain(depth=_DEPTH, sim_th=_SIMILARITY, param_str=WILDCARD)
        self._words = TokenTree()
        self._templates: dict[int, Template] = {}  # by Drain's cluster number

    def __len__(self) -> int:
        return len(self._templates)

    def restore(self, template: Template) -> None:
        """Add a template that was learnt after those already present."""
        self._drain.clusters_counter += 1
        # The tree places a template by its first message, as when it was learnt; only then does its
        # current text count.
        cluster = LogCluster(template.began.split(), self._drain.clusters_counter)
        self._drain.id_to_cluster[cluster.cluster_id] = cluster
        self._drain.add_seq_to_prefix_tree(self._drain.root_node, cluster)
        cluster.log_template_tokens = tuple(template.text.split())
        self._keep(cluster.cluster_id, template)

    def find(self, masked: str) -> Template | None:
        found = self._words.find(masked.split())
        return None if found is None else self._templates[found]

    def learn(self, masked: str, number: int) -> Template:
        """Learn a message that matches no template. `number`: for the template, if it is new."""
        cluster, _ = self._drain.add_log_message(masked)
        text = cluster.get_template()
        known = self._templates.get(cluster.cluster_id)
        if known is None:
            began = " ".join(masked.split())
            known = Template(_id(self._name, began), number, self._name, began, text)
        else:
            # It has become more general, but the tree of words still contains its former text.
            self._words.remove(known.text.split(), cluster.cluster_id)
        return self._keep(cluster.cluster_id, known._replace(text=text))

    def _keep(self, cluster_id: int, template: Template) -> Template:
        self._templates[cluster_id] = template
        self._words.add(template.text.split(), cluster_id)
        return template


def _id(format_name: str, began: str) -> str:
    return hashlib.sha256(f"{format_name} {began}".encode()).hexdigest()[:12]
