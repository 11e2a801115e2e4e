"""Starts child processes that run a module of this package, and talk over standard streams."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen


def start_child(module: str, **variables: str) -> Popen[bytes]:
    """The process; `variables` of its environment are set to these. OSError."""
    from subprocess import PIPE, Popen  # few brokers need it

    # The child must find the package wherever this process has it from.
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **variables}
    # No descriptor of ours is inheritable; without closing them all, no fork of this process's
    # memory is needed either.
    return Popen(
        [sys.executable, "-m", module],
        stdin=PIPE,
        stdout=PIPE,
        env=environment,
        close_fds=False,
    )
