"""Runs kazoo's own test suite against a server of ours, or of Java's, in place of its clusters.

The suite runs in an environment of its own, where this file is a plugin of its pytest, so it
imports nothing of ours. The harness of kazoo starts servers through `ManagedZooKeeper`, whose `run`
is replaced.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

START = "BARNABAS_KAZOO_START"
"""The variable with the command that starts a server, if the name of its configuration file
follows. `{jaas}` in it stands for the file with the users."""
_TICK_MS = 2000

_ENSEMBLE = "stops one server of three, and goes on with the others"
_RECONFIG = "changes an ensemble; a server that runs alone answers UNIMPLEMENTED, in Java too"
_NO_SERVER = "tests the client by itself"
_SAME = "repeats tests of the other files with another event loop in the client"

LEFT_OUT = {
    "test_client.py::TestClient::test_update_host_list": _ENSEMBLE,
    "test_client.py::TestSSLClient": "needs TLS, which our server does not have",
    "test_client.py::TestReconfig": _RECONFIG,
    "test_connection.py::TestReadOnlyMode": _ENSEMBLE,
    "test_sasl.py::TestSASLGSSAPIAuthentication": "needs a Kerberos server",
    "test_build.py": "checks the environment of kazoo's own CI",
    "test_eventlet_handler.py": _SAME,
    "test_gevent_handler.py": _SAME,
    "test_exceptions.py": _NO_SERVER,
    "test_hosts.py": _NO_SERVER,
    "test_interrupt.py": _NO_SERVER,
    "test_paths.py": _NO_SERVER,
    "test_retry.py": _NO_SERVER,
    "test_security.py": _NO_SERVER,
    "test_selectors_select.py": _NO_SERVER,
    "test_threading_handler.py": _NO_SERVER,
    "test_utils.py": _NO_SERVER,
}
"""The tests of kazoo that are not run, each with its reason, by the beginning of the name."""


def pytest_configure() -> None:
    """Replaces the harness's servers, in the process of the suite."""
    from kazoo.testing.common import ManagedZooKeeper, ZookeeperCluster

    ManagedZooKeeper.run = _run
    ManagedZooKeeper.running = property(_is_running)
    ZookeeperCluster.perform_ssl_certs_generation = lambda _: None


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    starts = tuple(LEFT_OUT)
    out = [each for each in items if each.nodeid.rpartition("tests/")[2].startswith(starts)]
    config.hook.pytest_deselected(items=out)
    items[:] = [each for each in items if each not in out]


def _run(server: Any) -> None:
    """Starts the server that the command in the environment names."""
    if server.running:
        return
    directory = Path(server.working_path)
    data, config, jaas = directory / "data", directory / "zoo.cfg", directory / "jaas.conf"
    data.mkdir(parents=True, exist_ok=True)
    jaas.write_text(server.jaas_config or "")
    lines = [
        *(f"tickTime={_TICK_MS}", f"dataDir={data}", f"clientPort={server.client_port}"),
        *("clientPortAddress=127.0.0.1", "maxClientCnxns=0", "admin.enableServer=false"),
        "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        *server.configuration_entries,
        # Java turns unknown settings into such properties.
        *(each.removeprefix("-Dzookeeper.") for each in server.java_system_properties),
    ]
    if server.jaas_config:
        lines.append(f"java.security.auth.login.config={jaas}")
    config.write_text("\n".join(lines) + "\n")
    command = [part.format(jaas=jaas) for part in json.loads(os.environ[START])]
    with (directory / "zookeeper.log").open("ab") as log:
        server.process = subprocess.Popen([*command, str(config)], stdout=log, stderr=log)


def _is_running(server: Any) -> bool:
    process = getattr(server, "process", None)
    return process is not None and process.poll() is None
