"""Provides the broker's current configuration, which dynamic config changes replace as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


class CurrentConfig:
    """Reads like a BrokerConfig; `replace` applies dynamic changes (KIP-226)."""

    __slots__ = ("_value",)

    def __init__(self, value: BrokerConfig) -> None:
        self._value = value

    @property
    def value(self) -> BrokerConfig:
        """Return the whole configuration as an immutable value."""
        return self._value

    def replace(self, value: BrokerConfig) -> None:
        """Replace the configuration after a dynamic setting has changed."""
        self._value = value

    def is_set(self, name: str) -> bool:
        """Return whether a key was set explicitly."""
        return self._value.is_set(name)

    def bool(self, name: str) -> bool:
        return self._value.bool(name)

    def int(self, name: str) -> int:
        return self._value.int(name)

    def str(self, name: str) -> str:
        return self._value.str(name)
