"""IN-3: deploy/grafana and deploy/prometheus: each panel and each alert asks for what is exported.

Brokers and collectors of all kinds are started and given something to do; then each expression is
resolved against their metrics pages. Promtool checks the rules, too, where it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from barnabas import Broker, Cluster
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import KafkaError
from barnabas.protocol.api import APIS
from tests.integration.collect_processes import Collecting
from tests.kit.broker.tls_broker import secured
from tests.kit.certificates import Authority
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import free_port
from tests.kit.promql import Exported, Unresolved
from tests.kit.waiting import wait_until

BOARDS = sorted((CHECKOUT / "deploy" / "grafana").glob("*.json"))
RULES = CHECKOUT / "deploy" / "prometheus" / "barnabas.rules.yml"
CASES = RULES.with_name("barnabas.rules.test.yml")
PAGE = CHECKOUT / "docs" / "monitoring.md"
LEGEND = re.compile(r"\{\{(\w+)\}\}")
ANNOTATION = re.compile(r"\$labels\.(\w+)")
LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
PANELS = {"row", "stat", "state-timeline", "table", "timeseries"}
"""Those of Grafana 10 and later; `graph` and `singlestat` are gone."""


class Target(NamedTuple):
    """One expression of a panel."""

    where: str
    expression: str
    legend: str


def board_of(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text())
    return board


def panels_of(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def variables_of(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in board["templating"]["list"]}


def substituted(expression: str) -> str:
    """As Grafana asks when everything is chosen; of the APIs, the one that is chosen first."""
    expression = re.sub(r'=~?"\$(?:job|instance|topic)"', '=~".+"', expression)
    return expression.replace("$__rate_interval", "5m").replace("$request", "Produce")


def targets_of(path: Path) -> list[Target]:
    return [
        Target(f"{path.name}: {panel['title']}", target["expr"], target["legendFormat"])
        for panel in panels_of(board_of(path))
        for target in panel["targets"]
    ]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


# --- what is exported ----------------------------------------------------------------------------


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


def work(servers: str) -> None:
    """Give the brokers of a cluster something of each kind to count."""
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic("lines", 3, 3)])
        admin.alter_client_quotas(
            {"user": "ANONYMOUS", "client-id": "limited"},
            {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9, "request_percentage": 1e6},
        )
    options = {"client_id": "limited", "transactional_id": "one"}
    with SyncProducer(servers, **options) as producer, producer.transaction():
        producer.send("lines", b"one").result()
    with SyncConsumer(servers, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["lines"])
        wait_until(lambda: consumer.poll(1_000))
        consumer.commit()
    with SyncAdmin(servers) as admin, pytest.raises(KafkaError):
        admin.delete_topics(["absent"])


def refuse(port: int) -> None:
    """Send an OTLP request that a collector refuses."""
    url = f"http://127.0.0.1:{port}/v1/logs"
    request = urllib.request.Request(url, b"{", {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request, timeout=60)


def collected(stack: ExitStack, cluster: Cluster, directory: Path, exported: Exported) -> None:
    """Add the pages of a collector: while it sends, and once its brokers are gone."""
    log = directory / "app.log"
    log.write_text("a line\n")
    collecting = Collecting(cluster, directory)
    stack.callback(collecting.kill_all)
    port, otlp_port = free_port(), free_port()
    options = ("--metrics-port", str(port), "--otlp-http", f"127.0.0.1:{otlp_port}")
    collecting.start(str(directory), *options)
    sent = re.compile(r"^barnabas_collector_lines_sent_total 1\.0$", re.MULTILINE)
    wait_until(lambda: _answers(port) and sent.search(page(port)))
    refuse(otlp_port)
    exported.add("collectors", f"127.0.0.1:{port}", page(port))
    cluster.stop()
    with log.open("a") as file:
        file.write("another line\n")
    wait_until(lambda: "\nbarnabas_collector_last_error_timestamp_seconds{" in page(port))
    exported.add("collectors", f"127.0.0.1:{port}", page(port))


def _answers(port: int) -> bool:
    try:
        page(port)
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    """Of three brokers, of one with TLS, and of collectors."""
    directory = tmp_path_factory.mktemp("boards")
    ports = [free_port() for _ in range(4)]
    config = {broker_id: {"barnabas.metrics.port": ports[broker_id]} for broker_id in (1, 2, 3)}
    found = Exported()
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(3, broker_config=config))
        files = Authority.make(directory).server()
        secure = secured(files, barnabas_metrics_port=str(ports[0]))
        stack.enter_context(Broker(config=secure))
        work(cluster.bootstrap_servers)
        for port in ports:
            found.add("brokers", f"127.0.0.1:{port}", page(port))
        logs = directory / "logs"
        logs.mkdir()
        collected(stack, cluster, logs, found)
        yield found


# --- boards --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_in_3_each_panel_asks_for_what_is_exported(path: Path, exported: Exported) -> None:
    """IN-3: each name, each label, each value of a label, and each label of a legend."""
    failures = []
    for where, expression, legend in targets_of(path):
        try:
            labels = exported.labels_of(substituted(expression))
            if unknown := set(LEGEND.findall(legend)) - labels:
                raise Unresolved(f"the legend has {sorted(unknown)}, the result {sorted(labels)}")
        except Unresolved as error:
            failures.append(f"{where}: {error}")
    assert failures == []


@pytest.mark.slow
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_in_3_the_lists_of_a_board_are_filled(path: Path, exported: Exported) -> None:
    """IN-3: clusters, brokers and topics are chosen from labels that there are."""
    variables = variables_of(board_of(path)).values()
    queries = [each["query"]["query"] for each in variables if each["type"] == "query"]
    assert queries
    for query in queries:
        found = LABEL_VALUES.fullmatch(query)
        assert found is not None, query
        selector, label = found.groups()
        assert label in exported.labels_of(substituted(selector)), query


def test_there_are_three_boards() -> None:
    """A link to a board has its `uid`, so that never changes."""
    stems = [path.stem for path in BOARDS]
    assert stems == ["barnabas-broker", "barnabas-cluster", "barnabas-collector"]
    assert [board_of(path)["uid"] for path in BOARDS] == stems


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_board_fits_each_grafana_from_10_on(path: Path) -> None:
    """Nothing in it belongs to one installation: its data source is chosen, its id is given."""
    board = board_of(path)
    assert board["schemaVersion"] >= 38 and board["id"] is None
    panels = board["panels"]
    assert {panel["type"] for panel in panels} <= PANELS
    ids = [panel["id"] for panel in panels]
    assert len(ids) == len(set(ids))
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels_of(board):
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(each == chosen for each in sources), panel["title"]
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps([panels, board["templating"]])))
    assert used == set(variables_of(board)), "variables that are used, and those that there are"


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_panel_explains_itself_in_its_unit(path: Path) -> None:
    for panel in panels_of(board_of(path)):
        text, unit = panel["description"], panel["fieldConfig"]["defaults"]["unit"]
        assert re.fullmatch(r"[A-Z].{20,}\.", text) and unit, panel["title"]
        first = panel["targets"][0]["expr"]
        if unit in ("Bps", "ops", "reqps"):
            assert "rate" in first, panel["title"]
        elif "rate(" in first:
            assert unit in ("cores", "ms", "percentunit"), panel["title"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_no_panel_lies_upon_another(path: Path) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in board_of(path)["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, f"{panel['title']} upon {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_the_apis_to_choose_from_exist() -> None:
    known = {api.name for api in APIS.values()} | {"FetchConsumer", "FetchFollower"}
    for path in BOARDS[:2]:
        names = variables_of(board_of(path))["request"]["query"].split(",")
        assert set(names) <= known and names[0] == "Produce"


# --- alerts --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_3_each_alert_asks_for_what_is_exported(exported: Exported) -> None:
    """IN-3: and what its texts say of labels is among those of its result."""
    failures = []
    for rule in rules():
        try:
            labels = exported.labels_of(rule["expr"])
        except Unresolved as error:
            failures.append(f"{rule['alert']}: {error}")
            continue
        named = set(ANNOTATION.findall(" ".join(rule["annotations"].values())))
        if not named <= labels:
            failures.append(f"{rule['alert']}: names {sorted(named)}, has {sorted(labels)}")
    assert failures == []


def test_an_alert_says_how_bad_it_is_and_what_to_do() -> None:
    found = rules()
    names = [rule["alert"] for rule in found]
    assert len(names) == len(set(names)) >= 20
    for rule in found:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert re.fullmatch(r"Barnabas[A-Z]\w+", rule["alert"])
        assert rule["labels"] == {"severity": rule["labels"]["severity"]}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}
        summary, description = rule["annotations"]["summary"], rule["annotations"]["description"]
        assert len(summary) <= 110 and not summary.endswith(".")
        assert description.endswith(".") and len(description) >= 80


def test_the_commands_that_alerts_name_exist() -> None:
    """Whoever is called at night types what the alert says."""
    from barnabas.cli.main import main

    text = " ".join(rule["annotations"]["description"] for rule in rules())
    commands = set(re.findall(r"`barnabas ((?:[a-z-]+ ?)+)", text))
    assert commands
    for command in commands:
        words = command.split("--")[0].split()
        assert main([*words, "--help"]) == 0, command


def test_in_3_the_page_lists_all_alerts() -> None:
    """IN-3: and no other."""
    listed = set(re.findall(r"^\| `(Barnabas\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert listed == {rule["alert"] for rule in rules()}


@pytest.mark.soak
@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus"
)
@pytest.mark.parametrize(("what", "file"), [("check", RULES), ("test", CASES)])
def test_in_3_prometheus_itself_accepts_the_rules_and_fires_them(what: str, file: Path) -> None:
    """IN-3: in the cases beside them, an alert fires when it should, and no other does."""
    command = ["promtool", what, "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
