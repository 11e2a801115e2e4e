"""Defines what an action of the console is: it plans a change, and carries out that plan."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from barnabas.client.admin.admin import Admin

MOST_CHANGES: Final = 1_000
"""The maximum number of changes in a plan; a person cannot read more."""


class Change(NamedTuple):
    """One thing that changes; None: it is not there."""

    what: str
    before: str | None
    after: str | None
    about: str = ""
    """Further facts; they may differ between the preview and the change."""

    @property
    def effect(self) -> tuple[str, str | None, str | None]:
        """Everything but the further facts."""
        return self.what, self.before, self.after


class Plan(NamedTuple):
    """Describes what an action will change. It changes nothing if it has no `changes`."""

    title: str
    """One line with the action and what it is about, for people and for the log."""
    changes: tuple[Change, ...]
    sentences: tuple[str, ...] = ()
    """Further facts about the change; they may differ between the preview and the change."""
    warnings: tuple[str, ...] = ()
    basis: Mapping[str, Any] = {}
    """The state, as JSON, that the plan relies on beside what its `changes` contain."""

    def canonical(self) -> bytes:
        """Return the bytes that are the same for two plans with the same effect."""
        value = [self.title, [list(change.effect) for change in self.changes], self.basis]
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


class Access(NamedTuple):
    """The cluster, as the user of the console reaches it."""

    admin: Admin
    servers: str
    settings: Mapping[str, Any]


class Action(ABC):
    """A change that somebody wants, with all its arguments."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def permission(self) -> str:
        """Name what the rules of access must allow, such as "Create on the topic 'a'"."""

    @abstractmethod
    async def plan(self, access: Access) -> Plan:
        """Read the current state, and return what would change.

        Raises a `WebProblem` if it is impossible, or an error of the client.
        """

    @abstractmethod
    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Carry out a plan, and return sentences about the result."""

    def as_planned(self, plan: Plan) -> Action:
        """Return the action that does exactly what the plan says.

        It differs from the action if its arguments depend on the state, such as the end of a log.
        """
        del plan
        return self
