"""The ways an incident is sent, to receivers on this machine (LG-4)."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.client.sync.producer import SyncConsumer
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from barnabas_pipeline.alerts.incidents import Example, Incident, Line
from barnabas_pipeline.alerts.notices import FIRING, RESOLVED
from barnabas_pipeline.alerts.rules import SinkOptions
from barnabas_pipeline.alerts.sinks import Notice, SentInPart, Sink, SinkFailed, sink_of
from tests.kit.alert_receivers import mail_receiver, web_receiver
from tests.kit.certificates import Authority

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
INCIDENT = Incident(
    "errors", "rate", "level ERROR", START, None, "5 lines of level ERROR", Example("entries")
)
OVER = INCIDENT._replace(end=START + timedelta(minutes=9))
LINES = [Line("app.log, line 7", "ERROR Job 7 failed – again")]
NOTICE = Notice(INCIDENT, FIRING, LINES)
RESOLUTION = Notice(OVER, RESOLVED, LINES)


def sink(kind: str, **options: Any) -> Sink:
    return sink_of(SinkOptions("team", kind, options))


def test_lg_4_a_webhook() -> None:
    """LG-4: JSON, with the id by which a receiver recognises a second post."""
    with web_receiver() as receiver:
        hook = sink("webhook", url=f"{receiver.url}/hook?a=1")
        hook.send(NOTICE)
        hook.send(RESOLUTION)
    first, second = receiver.posts
    assert (first.path, first.headers["Content-Type"]) == ("/hook?a=1", "application/json")
    assert first.headers["Idempotency-Key"] == f"{INCIDENT.id}-firing"
    assert first.body == {
        "version": 1,
        "id": INCIDENT.id,
        "status": "firing",
        "alert": "errors",
        "kind": "rate",
        "subject": "level ERROR",
        "summary": "5 lines of level ERROR",
        "starts_at": "2026-03-12T09:00:00.000Z",
        "ends_at": None,
        "lines": [{"place": "app.log, line 7", "text": "ERROR Job 7 failed – again"}],
    }
    assert second.body == {
        **first.body,
        "status": "resolved",
        "ends_at": "2026-03-12T09:09:00.000Z",
    }


def test_lg_4_alertmanager() -> None:
    """LG-4: a `postableAlert` of its API v2; the labels are the same to the end."""
    with web_receiver() as receiver:
        manager = sink("alertmanager", url=f"{receiver.url}/prefix/")
        manager.send(NOTICE)
        manager.send(RESOLUTION)
    first, second = receiver.posts
    assert first.path == "/prefix/api/v2/alerts"
    (alert,), (resolved,) = first.body, second.body
    assert alert.keys() == {"labels", "annotations", "startsAt", "endsAt"}
    assert (
        alert["labels"]
        == resolved["labels"]
        == {
            "alertname": "errors",
            "kind": "rate",
            "subject": "level ERROR",
            "incident": INCIDENT.id,
            "job": "barnabas",
        }
    )
    assert alert["annotations"]["lines"] == LINES[0].text
    assert alert["startsAt"] == resolved["startsAt"] == "2026-03-12T09:00:00.000Z"
    assert datetime.fromisoformat(alert["endsAt"]) > datetime.now(UTC), "it is firing until then"
    assert resolved["endsAt"] == "2026-03-12T09:09:00.000Z"


def test_lg_4_a_clock_that_is_ahead() -> None:
    """Alertmanager refuses an end before the start, and takes one in the future for firing."""
    ahead = datetime.now(UTC) + timedelta(days=1)
    over = INCIDENT._replace(start=ahead, end=ahead + timedelta(minutes=1))
    with web_receiver() as receiver:
        sink("alertmanager", url=receiver.url).send(Notice(over, RESOLVED, []))
    ((alert,),) = [each.body for each in receiver.posts]
    assert alert["startsAt"] <= alert["endsAt"]
    assert datetime.fromisoformat(alert["endsAt"]) <= datetime.now(UTC)


def test_lg_4_an_incident_that_is_over_when_it_is_first_sent() -> None:
    """LG-4: Alertmanager shows it for a while, and not for a year if none sends its end."""
    with web_receiver() as receiver:
        sink("alertmanager", url=receiver.url).send(Notice(OVER, FIRING, LINES))
    ((alert,),) = [each.body for each in receiver.posts]
    end = datetime.fromisoformat(alert["endsAt"])
    assert datetime.now(UTC) < end < datetime.now(UTC) + timedelta(hours=1)


def test_lg_4_secrets_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("secret\n")
    with web_receiver() as receiver:
        monkeypatch.setenv("HOOK", f"{receiver.url}/from-environment")
        sink("webhook", url_env="HOOK", token_file=str(tmp_path / "token")).send(NOTICE)
    assert receiver.posts[0].path == "/from-environment"
    assert receiver.posts[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [302, 404, 500])
def test_lg_4_a_webhook_that_refuses(status: int) -> None:
    """LG-4: no secret is shown; a redirect would lose the incident, as urllib follows it."""
    with web_receiver() as receiver:
        receiver.status = status
        with pytest.raises(SinkFailed) as caught:
            sink("webhook", url=f"{receiver.url}/SECRET").send(NOTICE)
    assert str(caught.value) == f"{receiver.url}/... answered {status}"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("webhook", {"url": "ftp://host/"}, "sink 'team': url: an address such as https"),
        ("webhook", {"url": "http://"}, "url: an address such as https"),
        ("webhook", {"url": "http://host:x/"}, "url: an address such as https"),
        ("webhook", {"url": "http://me:secret@host/"}, "url: it must not contain a password"),
        ("webhook", {"url_env": "NO_SUCH"}, "url_env: the environment variable NO_SUCH is not set"),
        ("webhook", {"url_file": "/no/such"}, "No such file or directory: '/no/such'"),
        ("mail", {"from": "Me <me>"}, "'Me <me>' is not an email address"),
        (
            "mail",
            {"user": "me"},
            "user and a password (password_env or password_file) must be set together",
        ),
    ],
)
def test_ux_4_options_that_are_wrong(kind: str, options: dict[str, str], message: str) -> None:
    given = {"host": "h", "from": "f@h", "to": ("Me <t@h>",), **options}
    with pytest.raises(ConfigError) as caught:
        sink(kind, **given)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A mail server's, which this process trusts."""
    authority = Authority.make(tmp_path)
    files = authority.server()
    monkeypatch.setenv("SSL_CERT_FILE", str(files.truststore))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    return context


MAIL = {"host": "127.0.0.1", "from": "logs@example.org", "to": ("a@example.org", "b@example.org")}


def test_lg_4_mail(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """LG-4: by STARTTLS, with a password from the environment; the end is a reply."""
    monkeypatch.setenv("MAIL_PASSWORD", "secret")
    with mail_receiver(tls, ("logs", "secret")) as receiver:
        mail = sink("mail", **MAIL, port=receiver.port, user="logs", password_env="MAIL_PASSWORD")
        mail.send(NOTICE)
        mail.send(RESOLUTION)
    first, second = receiver.mails
    assert first["Subject"] == "[barnabas] errors: level ERROR"
    assert second["Subject"] == "[barnabas] errors: level ERROR (resolved)"
    assert second["In-Reply-To"] == first["Message-ID"]
    text = first.get_content()
    assert "5 lines of level ERROR" in text
    assert "app.log, line 7\n  ERROR Job 7 failed – again" in text.replace("\r\n", "\n")


def test_lg_4_a_subject_of_several_lines() -> None:
    """A file may have any name, and a header has one line."""
    with mail_receiver() as receiver:
        mail = sink("mail", **MAIL, port=receiver.port, starttls=False)
        mail.send(NOTICE._replace(incident=INCIDENT._replace(subject="file a\nBcc: b@c")))
    assert receiver.mails[0]["Subject"] == r"[barnabas] errors: file a\nBcc: b@c"


def test_lg_4_a_wrong_password(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """LG-4: it is not shown, even where the server repeats it."""
    monkeypatch.setenv("MAIL_PASSWORD", "wrong-one")
    with mail_receiver(tls, ("logs", "secret")) as receiver:
        given = {**MAIL, "port": receiver.port, "user": "logs", "password_env": "MAIL_PASSWORD"}
        with pytest.raises(SinkFailed) as caught:
            sink("mail", **given).send(NOTICE)
    assert str(caught.value) == f"127.0.0.1:{receiver.port} answered 535"


def test_lg_4_mail_is_not_sent_in_clear() -> None:
    with mail_receiver() as receiver, pytest.raises(SinkFailed):
        sink("mail", **MAIL, port=receiver.port).send(NOTICE)
    assert receiver.mails == []


def test_lg_4_some_receivers_are_refused() -> None:
    with mail_receiver() as receiver:
        mail = sink("mail", **MAIL, port=receiver.port, starttls=False)
        receiver.refused = {"b@example.org"}
        with pytest.raises(SentInPart, match=r"refused b@example\.org"):
            mail.send(NOTICE)
        assert len(receiver.mails) == 1
        receiver.refused = {"a@example.org", "b@example.org"}
        with pytest.raises(SinkFailed, match=r"refused a@example\.org, b@example\.org"):
            mail.send(NOTICE)


def test_lg_4_a_topic(tmp_path: Path) -> None:
    """LG-4: the key is the incident's id."""
    with barnabas.Broker() as broker:
        topic = sink("topic", topic="alerts", bootstrap_servers=broker.bootstrap_servers)
        topic.send(NOTICE)
        topic.send(RESOLUTION)
        with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("alerts", 0)])
            records = [next(consumer), next(consumer)]
    assert {each.key for each in records} == {INCIDENT.id.encode()}
    assert [json.loads(each.value or b"")["status"] for each in records] == [FIRING, RESOLVED]
    with pytest.raises(SinkFailed, match="topic alerts: "):
        topic.send(NOTICE)
