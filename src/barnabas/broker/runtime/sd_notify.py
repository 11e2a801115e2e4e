"""Notifies systemd, or a replacement for it, when the broker is ready and when it stops
(sd_notify).

A service with `Type=notify` counts as started when the first notification has been sent, so the
broker is ready when units that are ordered after it are started. If NOTIFY_SOCKET is not set in the
environment, nothing is sent.
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
    """Send one state to the socket that is named in the environment.

    If sending fails, log a warning.
    """
    address = environ.get(_VARIABLE, "")
    if not address:
        return
    # systemd writes @ in place of the zero byte at the beginning of an abstract address
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_LONGEST_SEND_S)
            sender.connect(path)
            sender.send(state.encode())
    except OSError as error:
        _log.warning("%s=%s: %s not sent: %s", _VARIABLE, address, state, error)
