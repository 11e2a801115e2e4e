"""The switch `BARNABAS_SECURED=1`: the suites once more, with every broker and client secured.

Brokers listen with TLS, let clients log in, ask rules, and do so among each other as well; what
they need is in one directory for each run. Passwords are planted: `secrets` finds them wherever
they were said.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import shutil
import socket
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.security.secure_setup import SecureSetup

IS_SECURED = os.environ.get("BARNABAS_SECURED") == "1"
PROTOCOL = "SASL_SSL" if IS_SECURED else "PLAINTEXT"
"""Of the listeners of all brokers that are not given others."""
FILES = "BARNABAS_CLIENT_FILES"
"""The variable that tells clients in processes of their own where their settings are."""

JAVA, LIBRDKAFKA, PYTHON = "java.properties", "librdkafka.properties", "python.json"


class Suite(NamedTuple):
    setup: SecureSetup
    clients: Path
    """The directory with a file of settings for each kind of client."""

    @property
    def planted(self) -> list[str]:
        """What must not be said: passwords, and a line of each private key."""
        directory = self.setup.directory
        keys = [directory / "ca.key", directory / "server.pem"]
        return [*self.setup.passwords.values(), *(key.read_text().splitlines()[1] for key in keys)]

    def named(self, library: str) -> dict[str, Any]:
        return self.setup.settings_for(library)

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.setup.directory / "ca.pem")


@functools.cache
def suite() -> Suite:
    """That of this process or of the one that started it; the directory goes with the first."""
    from barnabas.broker.security.secure_setup import prepare

    # All that any broker of this machine asks for, so that none writes a certificate of its own.
    names = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    if FILES in os.environ:  # of the process that has started this one
        clients = Path(os.environ[FILES])
        return Suite(prepare(clients.parent, names), clients)
    directory = Path(tempfile.mkdtemp(prefix="barnabas-secured-"))
    atexit.register(shutil.rmtree, directory, True)
    made = {user: f"planted-{user}-{secrets.token_hex(12)}" for user in ("admin", "broker")}
    (directory / "users.json").write_text(json.dumps(made))
    setup = prepare(directory, names)
    clients = directory / "clients"
    clients.mkdir(mode=0o700)
    for name, settings in (
        (JAVA, setup.client_settings()),
        (LIBRDKAFKA, setup.librdkafka_settings()),
    ):
        (clients / name).write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
    (clients / PYTHON).write_text(json.dumps(setup.settings_for("kafka-python")))
    return Suite(setup, clients)


def java_file() -> Path:
    """How the Java client and the commands connect."""
    return suite().clients / JAVA


def spark_settings() -> dict[str, str]:
    """How Spark's sources connect, as their options."""
    settings = suite().setup.client_settings() if IS_SECURED else {}
    return {f"kafka.{name}": text for name, text in settings.items()}


def broker_words() -> list[str]:
    """More of the command line of `barnabas server start`."""
    return ["--secure", "--secure-dir", str(suite().setup.directory)] if IS_SECURED else []


def kafka_settings(port: int) -> list[str]:
    """The listener of a broker of Kafka's, and what it needs."""
    if not IS_SECURED:
        return [f"listeners=PLAINTEXT://127.0.0.1:{port}"]
    settings = {"listeners": f"SASL_SSL://127.0.0.1:{port}", **suite().setup.broker_settings()}
    return [f"{name}={text}" for name, text in settings.items()]


def copy_files(directory: Path) -> None:
    """Certificates and passwords, for what makes its own unless they are there."""
    if not directory.exists():
        kept = shutil.ignore_patterns("clients", "*.properties")
        shutil.copytree(suite().setup.directory, directory, ignore=kept)
