"""BT-1, BT-6: `barnabas track serve` as a process, before a real broker: what it answers with 200
is in the topic, whoever is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.client import ConsumerRecord
from barnabas_collector.dead_letter_headers import REASON
from tests.kit.country_database import write_database
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.processes.track_server import (
    SHOP,
    Senders,
    Tracking,
    await_more,
    event,
    records,
    tracking,
)
from tests.kit.processes.web_console import PATIENCE_S

TOPICS = ("events", "events-rejected", "barnabas-track-positions")
HTML = "<script>alert(1)</script>"


def ids(servers: str) -> Counter[str]:
    found = (dict(record.headers)["id"] for record in records(servers, "events"))
    return Counter((each or b"").decode() for each in found)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def server(servers: str) -> Iterator[Tracking]:
    with tracking(servers) as running:
        yield running


def written(servers: str, id_: str) -> ConsumerRecord:
    """The only record of an event."""
    header = ("id", id_.encode())
    [found] = [each for each in records(servers, "events") if header in each.headers]
    return found


def test_an_event_is_stored_once_by_its_id(server: Tracking, servers: str) -> None:
    sent = event("first-event", visitor="visitor-1", url=SHOP + "/", properties={"html": HTML})
    answer = server.send(sent, sent)
    assert answer.status == 200
    assert answer.json == {"accepted": 2, "rejected": 0, "repeated": 1, "reasons": []}
    # As from `sendBeacon`.
    again = server.send(sent, **{"Content-Type": "text/plain;charset=UTF-8"})
    assert (again.status, again.json["repeated"]) == (200, 1)
    record = written(servers, "first-event")
    assert record.key == b"visitor-1"
    value = json.loads(record.value or b"")
    assert abs(value.pop("received") - sent["time"]) < 60_000
    assert value == {**sent, "bot": False, "private": False}
    assert "set-cookie" not in answer.headers


def test_what_is_invalid_is_a_dead_letter_with_its_reason(server: Tracking, servers: str) -> None:
    wrong = event("forged\nid", url="javascript:" + HTML)
    answer = server.send(event("valid-event"), wrong)
    reason = "id: not 8 to 64 of A-Z, a-z, 0-9, - and _"
    assert answer.status == 200
    assert answer.json["reasons"] == [{"event": 1, "reason": reason}]
    assert (answer.json["accepted"], answer.json["rejected"]) == (1, 1)
    body = b'{"events": ' + b"[" * 100_000
    refused = server.ask("/v1/events", body, "POST", Content_Type="text/plain")
    assert (refused.status, refused.json) == (400, {"error": "the body is nested too deeply"})
    first, second = records(servers, "events-rejected")[-2:]
    assert dict(first.headers) == {REASON: reason.encode()}
    assert json.loads(first.value or b"") == wrong
    assert second.value == body[: 16 << 10]


@pytest.mark.parametrize("name", ["DNT", "Sec-GPC"])
def test_who_asks_not_to_be_followed_is_not(server: Tracking, servers: str, name: str) -> None:
    id_ = f"private-{name}"
    sent = event(id_, visitor="visitor-2", session="session-2")
    assert server.send(sent, **{name: "1"}).json["accepted"] == 1
    record = written(servers, id_)
    assert record.key is None
    value = json.loads(record.value or b"")
    assert value.keys() == {"id", "time", "name", "received", "bot", "private"}
    assert value["private"] is True
    server.send({**sent, "id": "!"}, **{name: "1"})
    assert records(servers, "events-rejected")[-1].value == b""


def test_programs_are_marked(server: Tracking, servers: str) -> None:
    server.send(event("robot-event"), **{"User-Agent": "Googlebot/2.1"})
    assert json.loads(written(servers, "robot-event").value or b"")["bot"] is True


def test_only_listed_origins_may_send(server: Tracking) -> None:
    asked = server.ask("/v1/events", method="OPTIONS", Origin=SHOP)
    assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, SHOP)
    assert server.send(event("origin-event"), Origin=SHOP).status == 200
    assert server.send(event("origin-event"), Origin=SHOP + ".evil.example").status == 403
    own = f"http://127.0.0.1:{server.port}"
    assert server.send(event("own-event"), Origin=own).status == 200


def test_a_pixel_of_a_mail_is_an_event(server: Tracking, servers: str) -> None:
    """BT-1: also without a script."""
    path = "/v1/pixel.gif?name=mail-opened&campaign=spring&id=pixel-event"
    answer = server.ask(path, User_Agent="Thunderbird/140")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/gif")
    assert (answer.headers["cache-control"], answer.body[:6]) == ("no-store", b"GIF89a")
    value = json.loads(written(servers, "pixel-event").value or b"")
    assert (value["name"], value["campaign"], value["bot"]) == ("mail-opened", "spring", False)
    assert abs(value["time"] - value["received"]) < 60_000
    assert server.ask("/v1/pixel.gif?name=mail-opened&id=!").status == 200
    letter = records(servers, "events-rejected")[-1]
    assert dict(letter.headers) == {REASON: b"id: not 8 to 64 of A-Z, a-z, 0-9, - and _"}
    assert server.ask(path, method="HEAD").status == 200
    assert server.ask("/v1/pixel.gif?name=" + "x" * 20_000).status == 413


def test_each_network_has_its_own_limit(servers: str) -> None:
    """BT-6: requests of one network cannot keep out those of another one."""
    running = Tracking(servers)
    running.options = ["--rate", "1", "--trust-forwarded"]
    running.start()
    try:
        forged = {"X-Forwarded-For": "203.0.113.9, 192.0.2.77"}
        answers = [running.send(event("rate-event"), **forged) for _ in range(100)]
        limited = [each for each in answers if each.status == 429]
        assert limited and answers[0].status == 200
        assert limited[0].headers["retry-after"] == "1"
        same = running.ask("/v1/pixel.gif?name=a", X_Forwarded_For="192.0.2.1")
        other = running.send(event("rate-event"), **{"X-Forwarded-For": "192.0.3.77"})
        assert (same.status, other.status) == (429, 200)
    finally:
        running.kill()


def ask_for_little(server: Tracking, **headers: str) -> int:
    """Make a request that counts but has no event, and return its status."""
    return server.ask("/v1/pixel.gif", method="HEAD", **headers).status


def test_a_network_has_a_limit_without_an_option(servers: str) -> None:
    """BT-6: what is accepted from one network is limited, and behind a proxy the log says why."""
    running = Tracking(servers)
    running.options = []
    running.start()
    forwarded = {"X-Forwarded-For": "192.0.2.77"}
    try:
        assert 429 in (ask_for_little(running, **forwarded) for _ in range(20_000))
        assert running.ask("/healthz").status == 200
    finally:
        running.process.terminate()
        _, errors = running.process.communicate(timeout=PATIENCE_S)
    assert errors.count("with --trust-forwarded, each network has its own limit") == 1
    assert "192.0.2.77" not in errors


@pytest.mark.parametrize("rate", ["none", "0"])
def test_the_limit_can_be_switched_off(servers: str, rate: str) -> None:
    running = Tracking(servers)
    running.options = ["--rate", rate]
    running.start()
    try:
        assert {ask_for_little(running) for _ in range(2_000)} == {200}
    finally:
        running.kill()


def test_an_event_has_the_country_of_its_address(servers: str, tmp_path: Path) -> None:
    """BT-6: the country is that of the address, and no event brings its own."""
    networks = {"192.0.2.0/24": {"country": {"iso_code": "AT"}}}
    path = write_database(tmp_path / "countries.mmdb", networks)
    running = Tracking(servers)
    running.options = ["--countries", str(path), "--trust-forwarded"]
    running.start()
    try:
        for id_, address in (("from-austria", "192.0.2.77"), ("from-nowhere", "203.0.113.9")):
            assert running.send(event(id_), **{"X-Forwarded-For": address}).status == 200
            forged = running.send({**event(f"{id_}-2"), "country": "NZ"})
            assert json.loads(forged.body)["rejected"] == 1
    finally:
        running.kill()
    ids = ("from-austria", "from-nowhere")
    found = [json.loads(written(servers, id_).value or b"") for id_ in ids]
    assert [each.get("country") for each in found] == ["AT", None]


def test_no_address_is_kept(servers: str, tmp_path: Path) -> None:
    """BT-6: neither in the topics, nor in the journal, nor in the log."""
    running = Tracking(servers)
    running.options = ["--dir", str(tmp_path), "--trust-forwarded", "--rate", "1"]
    running.start()
    forwarded = {"X-Forwarded-For": "203.0.113.9, 192.0.2.77", "X-Real-Ip": "192.0.2.77"}
    try:
        asked = (running.send(event("!"), event("addressed-event"), **forwarded) for _ in range(50))
        assert {each.status for each in asked} == {200, 429}
        running.process.terminate()
        _, errors = running.process.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    assert b"addressed-event" in (written(servers, "addressed-event").value or b"")
    kept = [repr(each) for topic in TOPICS for each in records(servers, topic)]
    kept += [repr(path.read_bytes()) for path in tmp_path.iterdir()]
    assert [
        each for each in (*kept, errors) if re.search(r"127\.0\.0|192\.0\.2|203\.0", each)
    ] == []


def test_requests_have_limits(server: Tracking) -> None:
    large = server.ask("/v1/events", b" " * 300_000, "POST", Content_Type="text/plain")
    assert (large.status, large.json) == (413, {"error": "a batch may have at most 262,144 bytes"})
    assert server.ask("/v1/events", b"{}", "POST", Content_Type="text/html").status == 415
    assert server.ask("/v1/events").status == 405


def test_probes_and_a_clean_stop(servers: str) -> None:
    with tracking(servers) as running:
        assert running.ask("/healthz").body == b"ok\n"
        assert (running.ask("/readyz").status, running.ask("/readyz").body) == (200, b"ready\n")
        assert running.send(event("last-event")).status == 200
        running.process.send_signal(signal.SIGTERM)
        _, errors = running.process.communicate(timeout=PATIENCE_S)
        assert (running.process.returncode, errors) == (0, "")


def test_bad_options_say_what_to_do(server: Tracking, servers: str) -> None:
    command = [COMMAND, *with_settings(["track", "serve", "--bootstrap-server", servers])]
    path = subprocess.run([*command, "--allow-origin", SHOP + "/"], capture_output=True, text=True)
    assert path.returncode == 2 and "--allow-origin https://shop.example/: not an" in path.stderr
    taken = subprocess.run([*command, "--port", str(server.port)], capture_output=True, text=True)
    assert taken.returncode == 1
    assert f"cannot listen for events on 127.0.0.1:{server.port}: " in taken.stderr


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path) as running:
        yield running


@pytest.mark.slow
def test_events_arrive_once_while_the_broker_is_killed(broker: BrokerProcess) -> None:
    with tracking(broker.bootstrap_servers) as running:
        senders = Senders(running)
        for _ in range(3):
            await_more(senders)
            broker.kill()
            broker.start()
        await_more(senders)
        senders.end()
        found = ids(broker.bootstrap_servers)
    assert found == Counter(senders.stored)


@pytest.mark.slow
def test_what_was_answered_is_there_after_the_server_was_killed(broker: BrokerProcess) -> None:
    """A batch whose answer was lost is sent again, so a reader counts its events by their ids."""
    with tracking(broker.bootstrap_servers) as running:
        senders = Senders(running)
        for _ in range(3):
            await_more(senders)
            running.kill()
            running.start()
        await_more(senders)
        senders.end()
        found = ids(broker.bootstrap_servers)
    assert set(found) == senders.stored
