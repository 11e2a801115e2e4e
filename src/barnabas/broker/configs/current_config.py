"""Provides the broker's current configuration. A dynamic change replaces it as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


class CurrentConfig:
    """Gives readers the current BrokerConfig. `replace` applies a dynamic change (KIP-226)."""

    __slots__ = ("_value",)

    def __init__(self, value: BrokerConfig) -> None:
        self._value = value

    @property
    def value(self) -> BrokerConfig:
        """The whole current configuration, which is immutable."""
        return self._value

    def replace(self, value: BrokerConfig) -> None:
        """Replace the configuration after a dynamic change."""
        self._value = value

    def is_set(self, name: str) -> bool:
        """Return whether the key has been set explicitly."""
        return self._value.is_set(name)

    def bool(self, name: str) -> bool:
        return self._value.bool(name)

    def int(self, name: str) -> int:
        return self._value.int(name)

    def str(self, name: str) -> str:
        return self._value.str(name)
