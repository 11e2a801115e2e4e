"""Checks which broker settings can change at run time, and logs changes.

A request to change any other setting is rejected. Any such setting in the metadata tree (written by
hand or by another version) is logged and ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping

from barnabas.config import BrokerConfig, inert_warning, key_of
from barnabas.config.dynamic_keys import refusal
from barnabas.errors import BarnabasError, ConfigError, InvalidConfig, InvalidRequest

_log = logging.getLogger(__name__)


def check_change(name: str, text: str, is_for_all: bool) -> None:
    """Raise InvalidConfig for an unknown name and InvalidRequest for a read-only setting.

    Also raises InvalidConfig for a security setting that would have no effect (SE-6).
    """
    try:
        key = key_of(name)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None
    reason = refusal(name, is_for_all)
    if reason is not None:
        raise InvalidRequest(reason)
    # Other inert configs are accepted with a warning.
    if key.inert:
        from barnabas.config.security_claims import (
            broken_promise,
        )  # rarely needed

        broken = broken_promise(name, text)
        if broken is not None:
            raise InvalidConfig(broken)


def unusable(stored: Mapping[str, str], is_for_all: bool) -> dict[str, str]:
    """Return the unusable broker settings in the tree, with the reasons."""
    reasons = {}
    for name, text in stored.items():
        try:
            check_change(name, text, is_for_all)
            key_of(name).parse(text)
        except BarnabasError as error:
            reasons[name] = str(error)
    return reasons


def usable(stored: Mapping[str, str], is_for_all: bool) -> dict[str, str]:
    """Return the usable broker settings in the tree."""
    reasons = unusable(stored, is_for_all)
    return {name: text for name, text in stored.items() if name not in reasons}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in `after` that are missing from `before` or differ from it."""
    return {name: text for name, text in after.items() if before.get(name) != text}


def in_question(
    current: Mapping[str, str], wanted: Mapping[str, str], useless: Container[str]
) -> dict[str, str]:
    """Return the settings that a request must validate: all except unchanged unusable ones."""
    return {
        name: text
        for name, text in wanted.items()
        if name not in useless or current.get(name) != text
    }


def log_changes(before: BrokerConfig, after: BrokerConfig) -> None:
    """Log each changed setting, with a warning if the change has no effect."""
    for name in dict.fromkeys((*before.set_names(), *after.set_names())):
        old, new = before.value(name), after.value(name)
        if old == new:
            continue
        key = key_of(name)
        if key.is_sensitive:
            _log.info("broker config %s changed", name)
        else:
            _log.info(
                "broker config %s changed to %s from %s",
                name,
                _shown(key.text(new)),
                _shown(key.text(old)),
            )
        warning = inert_warning(name)
        if warning is not None:
            _log.warning("%s", warning)


def _shown(text: str | None) -> str:
    return "unset" if text is None else text
