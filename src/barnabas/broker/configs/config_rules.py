"""Checks which broker settings may be changed at run time, and logs the changes.

A request to change any other setting is rejected. The metadata tree may still contain such a
setting, because someone edited the tree by hand or another version of the broker wrote it. The
setting is then logged and ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping

from barnabas.config import BrokerConfig, inert_warning, key_of
from barnabas.config.dynamic_keys import refusal
from barnabas.errors import BarnabasError, ConfigError, InvalidConfig, InvalidRequest

_log = logging.getLogger(__name__)


def check_change(name: str, text: str, is_for_all: bool) -> None:
    """Raise InvalidConfig if the setting is unknown, or InvalidRequest if it is read-only.

    Also raises InvalidConfig for a security setting that would have no effect (SE-6).
    """
    try:
        key = key_of(name)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None
    reason = refusal(name, is_for_all)
    if reason is not None:
        raise InvalidRequest(reason)
    # A change to any other inert config is accepted with a warning.
    if key.inert:
        from barnabas.config.security_claims import (
            broken_promise,
        )  # rarely needed

        broken = broken_promise(name, text)
        if broken is not None:
            raise InvalidConfig(broken)


def unusable(stored: Mapping[str, str], is_for_all: bool) -> dict[str, str]:
    """Return the broker settings in the tree that cannot be used, and the reason for each of
    them.
    """
    reasons = {}
    for name, text in stored.items():
        try:
            check_change(name, text, is_for_all)
            key_of(name).parse(text)
        except BarnabasError as error:
            reasons[name] = str(error)
    return reasons


def usable(stored: Mapping[str, str], is_for_all: bool) -> dict[str, str]:
    """Return the broker settings in the tree that can be used."""
    reasons = unusable(stored, is_for_all)
    return {name: text for name, text in stored.items() if name not in reasons}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in `after` that are new or have a different value in `before`."""
    return {name: text for name, text in after.items() if before.get(name) != text}


def in_question(
    current: Mapping[str, str], wanted: Mapping[str, str], useless: Container[str]
) -> dict[str, str]:
    """Return the settings that must be validated for a request. Only unusable settings that the
    request leaves unchanged are skipped.
    """
    return {
        name: text
        for name, text in wanted.items()
        if name not in useless or current.get(name) != text
    }


def log_changes(before: BrokerConfig, after: BrokerConfig) -> None:
    """Log each changed setting. If the change has no effect, log a warning."""
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
