"""Describes the two lines in which Java's own logging (`java.util.logging`) writes a record by
default.

    Nov 28, 2026 6:25:18 AM org.apache.catalina.startup.HostConfig deployDirectory
    INFO: Deployment of web application directory [/srv/shop] has finished in [215] ms

The level is at the start of the second line, so the two lines are joined before they are matched.
"""

from __future__ import annotations

from typing import Final

FIRST: Final = (
    r"^[A-Z][a-z]{2} [0-9]{1,2}, [0-9]{4} [0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M"
    r" [A-Za-z_][0-9A-Za-z_$.<>-]*(?: [0-9A-Za-z_$<>-]+)?\r?$"
)
SECOND: Final = r"^(?:SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): "
