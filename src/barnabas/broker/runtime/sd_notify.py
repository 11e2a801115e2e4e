"""Notifies systemd, or a replacement, when the broker is ready and when it stops (sd_notify).

A service of `Type=notify` counts as started after the first notification, so units ordered after it
find the broker ready. Without NOTIFY_SOCKET in the environment, nothing is sent.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"

_VARIABLE: Final = "NOTIFY_SOCKET"
_LONGEST_SEND_S: Final = 1.0  # an unresponsive service manager must not block the broker

_log = logging.getLogger("barnabas.broker")


def notify(state: str, environ: Mapping[str, str]) -> None:
    """Send one state to the socket named in the environment; log a warning if that fails."""
    address = environ.get(_VARIABLE, "")
    if not address:
        return
    # systemd writes @ for the zero byte with which an abstract address begins
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_LONGEST_SEND_S)
            sender.connect(path)
            sender.send(state.encode())
    except OSError as error:
        _log.warning("%s=%s: %s not sent: %s", _VARIABLE, address, state, error)
