"""Defines the actions of the console. An action plans a change and then carries out the plan."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from barnabas.client.admin.admin import Admin

MOST_CHANGES: Final = 1_000
"""The maximum number of changes in a plan. A person cannot review more."""


class Change(NamedTuple):
    """One thing that changes.

    None means that the thing does not exist before or after the change.
    """

    what: str
    before: str | None
    after: str | None
    about: str = ""
    """Additional facts, which may differ between the preview and the change."""

    @property
    def effect(self) -> tuple[str, str | None, str | None]:
        """All fields except the additional facts."""
        return self.what, self.before, self.after


class Plan(NamedTuple):
    """Describes what an action will change. Without `changes`, it changes nothing."""

    title: str
    """One line that names the action and its object, for people and for the log."""
    changes: tuple[Change, ...]
    sentences: tuple[str, ...] = ()
    """Additional facts about the change, which may differ between the preview and the change."""
    warnings: tuple[str, ...] = ()
    basis: Mapping[str, Any] = {}
    """The state, as JSON, on which the plan relies in addition to its `changes`."""

    def canonical(self) -> bytes:
        """Return bytes that are equal for two plans if the plans have the same effect."""
        value = [self.title, [list(change.effect) for change in self.changes], self.basis]
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


class Access(NamedTuple):
    """The cluster, accessed as the user of the console."""

    admin: Admin
    servers: str
    settings: Mapping[str, Any]


class Action(ABC):
    """Represents a requested change with all its arguments."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def permission(self) -> str:
        """Name the permissions that the action requires, such as "Create on the topic 'a'"."""

    @abstractmethod
    async def plan(self, access: Access) -> Plan:
        """Read the current state, and return what would change.

        Raises a `WebProblem` if the change is impossible, or a client error.
        """

    @abstractmethod
    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Carry out a plan, and return sentences that describe the result."""

    def as_planned(self, plan: Plan) -> Action:
        """Return the action that does exactly what the plan says.

        The result differs from this action if its arguments depend on the state, such as the end of
        a log.
        """
        del plan
        return self
