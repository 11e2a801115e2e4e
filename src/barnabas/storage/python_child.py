"""Starts child processes that run a module of this package and communicate over the standard
streams.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen


def start_child(module: str, **variables: str) -> Popen[bytes]:
    """Start a process that runs the module with these environment variables. Raises OSError."""
    from subprocess import PIPE, Popen  # rarely needed

    # The child process must import the same copy of this package.
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **variables}
    # No descriptor is inheritable, so there is nothing to close. With close_fds, the page tables
    # would have to be copied.
    return Popen(
        [sys.executable, "-m", module],
        stdin=PIPE,
        stdout=PIPE,
        env=environment,
        close_fds=False,
    )
