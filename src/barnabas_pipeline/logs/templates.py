"""Stores message templates, and learns new ones using `learner.py`.

A template is a masked message in which variable words have become `<*>`. Recognising a known
template does not involve learning. Only the driver learns templates, in the order of the log, so a
template has the same id in all tasks. The id is a hash of the format and the template's first
message, so the same log always yields the same ids.

Templates are stored as rows of a table, from which the learner is rebuilt. The learner depends only
on each template's first message and current text.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas_pipeline.logs.learner import Learner
from barnabas_pipeline.logs.token_tree import WILDCARD, TokenTree

_log = logging.getLogger(__name__)

MOST: Final = 5_000
"""The maximum number of templates per format. Once it is reached, new messages are not assigned a
template.
"""


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
    """The known templates. Spark pickles this object and sends it to the tasks."""

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
        """Return the template of a masked message, creating or generalising a template if
        necessary.

        Returns None if the format already has `MOST` templates and none of them matches.
        """
        known = self._format(format_name)
        found = known.find(masked)
        if found is None and len(known) < MOST:
            found = known.learn(masked, self._next_number)
            self._next_number = max(self._next_number, found.number + 1)
            if len(known) == MOST:
                _log.warning(
                    "%s has %d templates, the limit: no more are learnt", format_name, MOST
                )
        return found

    def _format(self, name: str) -> _OfFormat:
        return self._of_format.setdefault(name, _OfFormat(name))


class _OfFormat:
    """Holds the templates of one format, a learner that learns them, and a tree of words that finds
    them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._words = TokenTree()
        self._templates: dict[int, Template] = {}  # by their numbers
        self._learner: Learner | None = None

    def __getstate__(self) -> dict[str, object]:
        # Tasks only look templates up; the larger learner is not sent to them.
        return {**self.__dict__, "_learner": None}

    def __len__(self) -> int:
        return len(self._templates)

    def restore(self, template: Template) -> None:
        self._keep(template)

    def find(self, masked: str) -> Template | None:
        found = self._words.find(masked.split())
        return None if found is None else self._templates[found]

    def learn(self, masked: str, number: int) -> Template:
        """Learn a message that matches no template. `number`: the number to assign if the template
        is new."""
        if self._learner is None:
            self._learner = self._rebuilt()
        words = masked.split()
        group = self._learner.learn(words, number)
        known = self._templates.get(group)
        if known is None:
            began = " ".join(words)
            return self._keep(Template(_id(self._name, began), number, self._name, began, began))
        # The template has become more general; remove its former text from the tree of words.
        former = known.text.split()
        self._words.remove(former, group)
        text = " ".join(
            was if was == now else WILDCARD for was, now in zip(former, words, strict=True)
        )
        return self._keep(known._replace(text=text))

    def _rebuilt(self) -> Learner:
        learner = Learner()
        for number, template in self._templates.items():
            learner.restore(number, template.began.split(), template.text.split())
        return learner

    def _keep(self, template: Template) -> Template:
        self._templates[template.number] = template
        self._words.add(template.text.split(), template.number)
        return template


def _id(format_name: str, began: str) -> str:
    return hashlib.sha256(f"{format_name} {began}".encode()).hexdigest()[:12]
