"""Implements `barnabas server start`, which works like `kafka-server-start.sh` and accepts its
arguments.

Arguments are parsed by hand, so that nothing delays the start of the broker (see `cli.main`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.server.pid_file import claim, read_pid_file, release
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.main import Companion

HELP = """\
Usage: barnabas server start [-daemon] [server.properties] [options]

Run a broker until SIGTERM or Ctrl-C. When it is ready, it prints one line:
  barnabas ready on 127.0.0.1:9092 (broker 0, /var/lib/barnabas, 97 ms)

Options:
  -daemon               run in the background; stop it with `barnabas server stop --dir DIR`
  --log-file FILE       write the broker's log here, to at most ten files of 10 MiB each; default:
                        standard error or, with -daemon, the data directory's name and .log
  --log-format FORMAT   text (the default), or json: one object per line, with time, level, logger,
                        message, broker and exception (barnabas.log.format)
  --port PORT           listen on this port (0: any free port)
  --host HOST           listen on this address (0.0.0.0: on all, for clients on other machines)
  --listeners LIST      set both in Kafka's notation: PLAINTEXT://10.0.0.1:9092 (listeners)
  --data-dir DIR        keep the data in this directory (log.dirs); --dir is short for it
  --override KEY=VALUE  set any of Kafka's broker configs; may be repeated
  --secure              use TLS, authentication and ACLs; creates certificates and an administrator
  --secure-dir DIR      keep these here; default: the data directory's name and -secure
  --profile kafka-2.3   use that version's defaults; all other settings override them
  --test-control PORT   accept faults over HTTP on 127.0.0.1:PORT (0: any free port), for tests of
                        applications (docs/testing-faults.md); never where data matters
  --help                show this text

Environment variables (KAFKA_LOG_DIRS sets log.dirs) override the properties file, and the command
line overrides both. Any other KAFKA_... variable has no effect, and a warning names it. All other
configs have Kafka's defaults, with one exception: without a properties file, zookeeper.connect and
advertised.listeners, the broker serves only this machine. It then listens on 127.0.0.1, and the
first member of a group does not wait for others (group.initial.rebalance.delay.ms=0).

Examples:
  barnabas server start
      serves only this machine, on port 9092, with its data in /tmp/kafka-logs: for a quick try
  barnabas server start --data-dir ~/barnabas --host 0.0.0.0
      serves other machines too; without --secure, anyone who can reach it may do anything
  barnabas server start --data-dir ~/barnabas --port 9192
  barnabas server start --data-dir ~/barnabas --profile kafka-2.3
      behaves as books about Kafka 2.3 say: a replica leaves the ISR after 10 s, not 30 s
  barnabas server start /etc/kafka/server.properties
      uses a Kafka broker's file; to run without ZooKeeper, add --override zookeeper.connect=
  barnabas server start --data-dir /srv/log --override num.partitions=3 \\
      --override log.retention.hours=24
  KAFKA_NUM_PARTITIONS=3 barnabas server start --data-dir /srv/log
  barnabas server start --data-dir ~/barnabas --secure
      prints how its administrator connects, with the files in ~/barnabas-secure
"""


_DAEMON = "-daemon"
_TEST_CONTROL = "--test-control"
_SECURE, _SECURE_DIR = "--secure", "--secure-dir"
_LOG_FILE = "--log-file"
_PORT, _HOST = "--port", "--host"
_LOG_FORMAT = "--log-format"
# `server stop` and other commands call it --dir.
_DATA_DIR = ("--data-dir", "--dir")
_SETTINGS = ("--listeners", *_DATA_DIR, "--override", _LOG_FORMAT)
_WITH_VALUE = (
    *(_PORT, _HOST, *_SETTINGS, "--profile"),
    *(_TEST_CONTROL, _SECURE_DIR, _LOG_FILE),
)
_OPTIONS = (*_WITH_VALUE, _DAEMON, _SECURE, "--help")
_THIS_MACHINE = "127.0.0.1"
_DEFAULT_PORT = 9092
_DELAY = "group.initial.rebalance.delay.ms"


class UsageError(Exception):
    """Raised if the command line is invalid; the message gives the reason."""


class StartArguments(NamedTuple):
    properties_file: str | None
    settings: dict[str, str]  # on the command line; later ones replace earlier ones
    wants_help: bool
    as_daemon: bool = False
    profile: str | None = None  # a name in `config.profiles`
    test_control_port: int | None = None
    is_secure: bool = False
    secure_dir: str | None = None
    log_file: str | None = None
    host: str | None = None
    port: int | None = None


def start(words: Sequence[str]) -> int:
    """Run the broker that these arguments describe, and return the exit code."""
    began_at_s = _process_began_at_s()
    try:
        arguments = parse(words)
    except UsageError as error:
        problem = "; ".join(filter(None, map(str, error.args)))
        see = " See" if problem.endswith("?") else "; see"
        sys.stderr.write(f"barnabas server start: {problem}{see} barnabas server start --help\n")
        return 2
    if arguments.wants_help:
        sys.stdout.write(HELP)
        return 0
    # Import these only now, because --help and invalid command lines do not need them.
    from barnabas.broker.main import run
    from barnabas.config import BrokerConfig, environment_warning
    from barnabas.errors import ConfigError

    try:
        properties = properties_of(arguments)
        setup = None
        if arguments.is_secure:
            from barnabas.cli.server.secure_option import secure_configs  # rarely used

            setup, properties = secure_configs(properties, arguments.secure_dir)
        config = BrokerConfig(properties)
        # A misspelt KAFKA_... variable would silently have no effect.
        config.warnings += filter(None, [environment_warning(os.environ)])
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"barnabas server start: {_one_line(error)}\n")
        return 1
    first_directory = Path(config.log_directories()[0])
    if arguments.as_daemon:
        return _start_daemon(words, arguments.log_file, first_directory)
    is_ours = claim(first_directory, config.str("listeners"))
    # The pid file may name an unrelated process. The lock decides who may use the directory. Check
    # it before the ports, because the broker that holds it usually has them, too.
    if not is_ours and _is_locked(first_directory):
        running = read_pid_file(first_directory)
        sys.stderr.write(
            f"barnabas: log directory {first_directory} is locked by another broker"
            f"{'' if running is None else f', process {running.pid}'}; `barnabas server stop "
            f"--dir {first_directory}` stops it\n"
        )
        return 1
    try:
        companion = _companion(arguments.test_control_port)
        return run(config, began_at_s, companion, setup, log_file=arguments.log_file)
    finally:
        if is_ours:
            release(first_directory)


def _is_locked(directory: Path) -> bool:
    """Return whether a broker runs on this log directory."""
    from barnabas.storage.directory import LOCK_NAME
    from barnabas.storage.files import OsFiles

    try:
        OsFiles().lock(directory / LOCK_NAME).release()
    except BlockingIOError:
        return True
    except OSError:
        return False  # the start itself finds out what is wrong with the directory
    return False


def properties_of(arguments: StartArguments) -> dict[str, str]:
    """Return all settings. Later sources override earlier ones. Raises ConfigError or OSError."""
    from barnabas.config import from_environment, load_properties

    properties: dict[str, str] = {}
    if arguments.profile is not None:
        from barnabas.config.profiles import profile  # rarely used

        properties.update(profile(arguments.profile))
    if arguments.properties_file is not None:
        properties.update(load_properties(arguments.properties_file))
    # Kafka's images set configs through environment variables, which override the file.
    properties.update(from_environment(os.environ))
    properties.update(arguments.settings)
    # Kafka's defaults are for a cluster. A user who specifies neither a file nor other machines
    # wants a local broker whose groups do not wait for more members.
    is_for_this_machine = arguments.properties_file is None and not (
        properties.get("zookeeper.connect") or properties.get("advertised.listeners")
    )
    if arguments.host is not None or arguments.port is not None:
        properties["listeners"] = _listeners(arguments, is_for_this_machine)
    elif is_for_this_machine:
        properties.setdefault("listeners", _listeners(arguments, is_for_this_machine))
    # A profile mimics one version, including its initial rebalance delay.
    if is_for_this_machine and arguments.profile is None:
        properties.setdefault(_DELAY, "0")
    return properties


def _listeners(arguments: StartArguments, is_for_this_machine: bool) -> str:
    """Return the value for `listeners` specified by --host and --port."""
    host = arguments.host
    if host is None:
        host = _THIS_MACHINE if is_for_this_machine else ""
    port = _DEFAULT_PORT if arguments.port is None else arguments.port
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"


def _companion(port: int | None) -> Companion | None:
    """Import and return the server that accepts faults over HTTP, if requested."""
    if port is None:
        return None
    from barnabas.testing.faults.control import FaultControl

    return FaultControl(port)


def _start_daemon(words: Sequence[str], log_file: str | None, first_directory: Path) -> int:
    from barnabas.cli.server.daemon import LOG_FILE, log_file_of, start_daemon

    output = log_file_of(first_directory) if log_file is None else Path(log_file).absolute()
    try:
        own = [word for word in words if word != _DAEMON]
        return start_daemon(
            ["server", "start", *own, LOG_FILE, str(output)], output, "barnabas ready on "
        )
    except OSError as error:
        is_default = log_file is None and error.filename in map(str, (output, *output.parents))
        advice = f"; name another file for the log by {_LOG_FILE}" if is_default else ""
        sys.stderr.write(f"barnabas server start: {_one_line(error)}{advice}\n")
        return 1


def parse(words: Sequence[str]) -> StartArguments:
    """Parse arguments in any order, `--option VALUE` or `--option=VALUE`. Raises UsageError."""
    file: str | None = None
    settings: dict[str, str] = {}
    flags: set[str] = set()
    given: dict[str, str] = {}  # the last value of a repeated option wins
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("--help", "-h"):
            return StartArguments(None, {}, True)
        if word in (_DAEMON, _SECURE):
            flags.add(word)
        # `_option` rejects unknown options, suggesting the nearest name.
        elif word.startswith("-"):
            option, value = _option(word, left)
            if option in _SETTINGS:
                settings.update([_setting(option, value)])
            else:
                given[option] = value
        elif file is not None:
            raise UsageError(f"two properties files are given, {file} and {word}: give only one")
        else:
            file = word
    host, port = given.get(_HOST), given.get(_PORT)
    if host == "":  # an unset variable must not open the broker to other machines
        raise UsageError("--host needs an address; 0.0.0.0 stands for all")
    if host is not None or port is not None:
        if "listeners" in settings:
            raise UsageError(
                "--host and --port cannot be combined with listeners: leave out one or the other"
            )
        # The broker would use the default port, but the user expects the file's.
        if file is not None and port is None:
            raise UsageError("--host with a properties file needs --port, too")
    test_control_port = given.get(_TEST_CONTROL)
    return StartArguments(
        file,
        settings,
        wants_help=False,
        as_daemon=_DAEMON in flags,
        profile=given.get("--profile"),
        test_control_port=None
        if test_control_port is None
        else _port(_TEST_CONTROL, test_control_port),
        # A directory for secrets implies --secure.
        is_secure=_SECURE in flags or _SECURE_DIR in given,
        secure_dir=given.get(_SECURE_DIR),
        log_file=given.get(_LOG_FILE),
        host=None if host is None else host.strip("[]"),
        port=None if port is None else _port(_PORT, port),
    )


def _option(word: str, left: list[str]) -> tuple[str, str]:
    """Return an option and its value. If the value is not in the same word, it is taken from the
    remaining words. Raises UsageError.
    """
    option, equals, value = word.partition("=")
    if option not in _WITH_VALUE:
        from barnabas.similar_names import did_you_mean  # only for an error

        raise UsageError(f"no such option: {option}", did_you_mean(option, _OPTIONS))
    if equals:
        return option, value
    if not left:
        raise UsageError(f"{option} needs a value")
    return option, left.pop(0)


def _setting(option: str, value: str) -> tuple[str, str]:
    """Return the broker config set by an option."""
    if option == "--listeners":
        return "listeners", value
    if option == _LOG_FORMAT:
        return "barnabas.log.format", value
    if option in _DATA_DIR:
        if not value:
            raise UsageError(f"{option} needs a directory")
        return "log.dirs", value
    key, equals, setting = value.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--override {value}: not KEY=VALUE, such as num.partitions=3")
    return key.strip(), setting.strip()


def _port(option: str, value: str) -> int:
    if not value.isdecimal() or int(value) > 65_535:
        raise UsageError(f"{option} {value}: not a port, 0 to 65535")
    return int(value)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    return " ".join(str(error).split())


def _process_began_at_s() -> float:
    """Return when this process started, in seconds of `time.monotonic`. This includes the start of
    the interpreter. On Linux, it is known to a hundredth of a second. Elsewhere, it is the current
    time.
    """
    now_s = time.monotonic()
    try:
        with open("/proc/self/stat", "rb") as stat:
            # Field 22 is counted from the end of the name in parentheses, because the name may
            # contain anything.
            began_ticks = int(stat.read().rpartition(b")")[2].split()[19])
        # Ticks count from boot, including suspended time.
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - began_ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now_s
    return now_s - age_s if 0 <= age_s < 60 else now_s
