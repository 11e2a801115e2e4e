"""Implements `barnabas zookeeper start`.

Like `server start`, it parses its arguments by hand and imports only what it needs, so that the
server is ready in a tenth of a second.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

HELP = """\
Usage: barnabas zookeeper start [zoo.cfg] [options]

Run a ZooKeeper server for brokers and tools on this machine, until SIGTERM or Ctrl-C. When it is
ready, it prints one line:
  zookeeper ready on 127.0.0.1:2181

It is a single server, so its machine must not be lost: a production cluster needs an ensemble of
Apache ZooKeeper. It responds to a write only after the transaction is on disk.

Options:
  --port PORT           listen on this port (clientPort; 0: any free port); default: 2181
  --host HOST           listen on this address (clientPortAddress); default: 127.0.0.1
  --data-dir DIR        keep the tree and the sessions in this directory (dataDir); --dir is short
                        for it; default: ~/barnabas-zookeeper
  --jaas-config FILE    let the users in the section Server of this file log in with DIGEST-MD5
                        (java.security.auth.login.config); default: no users
  --help                show this text

The file may set tickTime, dataDir, clientPort, clientPortAddress, maxClientCnxns,
minSessionTimeout, maxSessionTimeout, 4lw.commands.whitelist, extendedTypesEnabled=true (nodes with
a time to live), and the settings for logins that Java's server reads from system properties. A
warning lists settings that have no effect here. Options override the file.

`barnabas zkServer.sh start|status|stop zoo.cfg` runs the server in the background.

Examples:
  barnabas zookeeper start
  barnabas zookeeper start --data-dir /srv/zookeeper --port 2182
  barnabas zookeeper start /etc/zookeeper/conf/zoo.cfg
"""

DEFAULT_DIRECTORY = "~/barnabas-zookeeper"
_WITH_VALUE = {
    "--port": "port",
    "--host": "host",
    "--data-dir": "data_dir",
    "--dir": "data_dir",
    "--jaas-config": "jaas_config",
}


class UsageError(Exception):
    """Raised if the command line is invalid; the message gives the reason."""


def start(words: Sequence[str]) -> int:
    """Run the server that these arguments describe, and return the exit code."""
    if "--help" in words or "-h" in words:
        sys.stdout.write(HELP)
        return 0
    try:
        file, given = _parse(words)
    except UsageError as error:
        sys.stderr.write(
            f"barnabas zookeeper start: {error}; see barnabas zookeeper start --help\n"
        )
        return 2
    import logging

    from barnabas.broker.runtime.process_log import LineFormatter
    from barnabas.errors import ConfigError
    from barnabas.zookeeper.server import run
    from barnabas.zookeeper.settings import JAAS_CONFIG, settings_from

    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    try:
        properties = {}
        if file is not None:
            from barnabas.config.properties import load_properties

            properties = load_properties(file)
        else:
            properties["dataDir"] = DEFAULT_DIRECTORY
        if "jaas_config" in given:
            properties[JAAS_CONFIG] = given["jaas_config"]
        port = int(given["port"]) if "port" in given else None
        settings, warnings = settings_from(
            properties, port=port, host=given.get("host"), data_dir=given.get("data_dir")
        )
    except ConfigError as error:
        # The errors of a setting begin with its name, and those of the file with its path.
        where = "" if file is None or str(error).startswith(file) else f"{file}: "
        sys.stderr.write(f"barnabas zookeeper start: {where}{error}\n")
        return 1
    for warning in warnings:
        logging.getLogger("barnabas.zookeeper").warning("%s: %s", file, warning)
    return run(settings)


def _parse(words: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Return the file and the options, by the names of `settings_from`. Raises UsageError."""
    file: str | None = None
    given: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        option, has_value, value = word.partition("=")
        if option in _WITH_VALUE:
            if not has_value:
                if not left:
                    raise UsageError(f"{option} needs a value")
                value = left.pop(0)
            if not value or (option == "--port" and not value.isdecimal()):
                raise UsageError(f"{option} cannot be {value!r}")
            given[_WITH_VALUE[option]] = value
        elif word.startswith("-"):
            raise UsageError(f"no such option: {option}")
        elif file is not None:
            raise UsageError(f"there can be only one file, but {word} was named after {file}")
        else:
            file = word
    return file, given
