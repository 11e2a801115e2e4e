"""Provides a Python command for Spark's workers that reduces their startup time to a third.

Spark puts `pyspark.zip` first on the path of each Python that it starts: a daemon for the tasks,
one process for a query's source, and one for each plan. The archive contains no bytecode, so each
process compiles PySpark again, which takes more than a second of CPU time. If PySpark was installed
with pip, the same version is also installed in compiled form. The command is therefore a small
script that removes the archive from the path and starts the interpreter.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Final

import pyspark

from pyspark_barnabas.java import missing_java
from pyspark_barnabas.start_script import provide_script

_LOOK_TIMEOUT_S: Final = 60
_WHERE: Final = "import py4j, importlib.util as u; print(u.find_spec('pyspark').origin)"
_SCRIPT: Final = """\
#!/bin/sh
# Python for Spark's workers: without pyspark.zip, which holds no bytecode, in front of the PySpark
# that is installed. Written by Barnabas; it is made again if it is removed.
IFS=:
set -f
kept=
for entry in $PYTHONPATH; do
    case $entry in
        {archives}/pyspark.zip | {archives}/py4j-*-src.zip) ;;
        *) kept=$kept${{kept:+:}}$entry ;;
    esac
done
unset IFS
PYTHONPATH=$kept exec {python} "$@"
"""


def python_for_workers() -> str:
    """Return the value for `PYSPARK_PYTHON`, which must be set before the session is created.

        os.environ["PYSPARK_PYTHON"] = python_for_workers()

    The value is for workers on this machine. The value is the path of this interpreter itself on
    Windows, if the archive is not the installed version (because of another `SPARK_HOME`), or if no
    script can be written.

    If a session would fail because there is no Java, issues a warning that explains how to fix
    this.
    """
    if (problem := missing_java(os.environ)) is not None:
        warnings.warn(problem, stacklevel=2)
    python = sys.executable
    if os.name != "posix" or not python or not _is_installed(python):
        return python
    script = _SCRIPT.format(python=shlex.quote(python), archives=shlex.quote(str(_archives())))
    path = provide_script("workers/python3", script)
    return python if path is None else str(path)


def _archives() -> Path:
    return _package() / "python" / "lib"


def _package() -> Path:
    return Path(pyspark.__file__).parent


def _is_installed(python: str) -> bool:
    """Return whether a new interpreter without the archive finds our PySpark, and Spark would use
    that PySpark's archive."""
    home = os.environ.get("SPARK_HOME")
    if home is not None and Path(home).resolve() != _package().resolve():
        return False
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = os.pathsep.join(each for each in entries if Path(each).parent != _archives())
    try:
        found = subprocess.run(
            [python, "-c", _WHERE],
            env=os.environ | {"PYTHONPATH": kept},
            capture_output=True,
            text=True,
            timeout=_LOOK_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0 and Path(found.stdout.strip()) == Path(pyspark.__file__)
