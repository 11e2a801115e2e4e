"""Sends incidents to a webhook, to Alertmanager, by mail or to a topic.

Each sink has a timeout, and raises `SinkFailed` on failure; the error message contains no secrets.
A receiver can recognise an incident that was sent twice by its id.
"""

from __future__ import annotations

import http.client
import json
import os
import smtplib
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import make_msgid, parseaddr
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from barnabas.printable import printable
from barnabas_pipeline.alerts.incidents import Incident, Line
from barnabas_pipeline.alerts.notices import FIRING, RESOLVED
from barnabas_pipeline.alerts.rules import SinkOptions

TIMEOUT_S: Final = 10.0
_READ_BYTES: Final = 65_536
# Alertmanager drops an alert without an end after five minutes, unless it is sent again.
_OPEN: Final = timedelta(days=365)
# How long Alertmanager shows an incident if its end is never sent.
_SHOWN: Final = timedelta(minutes=10)


class SinkFailed(BarnabasError):
    """A sink did not accept an incident. The incident will be sent again at the next evaluation."""


class SentInPart(BarnabasError):
    """Only some of a sink's receivers accepted an incident. If it were sent again, they would
    receive it twice.
    """


class Notice(NamedTuple):
    """A message to a sink about a firing or resolved incident, with example lines."""

    incident: Incident
    status: str
    lines: list[Line]

    def as_dict(self) -> dict[str, Any]:
        each = self.incident
        return {
            "version": 1,
            "id": each.id,
            "status": self.status,
            "alert": each.alert,
            "kind": each.kind,
            "subject": each.subject,
            "summary": each.summary,
            "starts_at": _rfc3339(each.start),
            "ends_at": None if each.end is None else _rfc3339(each.end),
            "lines": [line._asdict() for line in self.lines],
        }


class Sink(ABC):
    """A destination for incidents, named as in the rules file."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def send(self, notice: Notice) -> None:
        """Send a notice, and wait until it has been accepted.

        Raises `SinkFailed` or `SentInPart`.
        """


def sink_of(given: SinkOptions) -> Sink:
    """Return the sink that a rules file describes. Raises `ConfigError` if a secret is missing."""
    try:
        return _SINKS[given.kind](given.name, given.options)
    except (ConfigError, OSError) as error:
        raise ConfigError(f"sink {given.name!r}: {in_one_line(error)}") from None


class Webhook(Sink):
    """Posts an incident as JSON, with the incident's id and status in the
    `Idempotency-Key` header.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._url = _http_url(_secret("url", options))
        self._token = _secret("token", options)

    def send(self, notice: Notice) -> None:
        self._post(
            self._url,
            notice.as_dict(),
            {"Idempotency-Key": f"{notice.incident.id}-{notice.status}"},
        )

    def _post(self, url: str, body: Any, headers: Mapping[str, str] | None = None) -> None:
        own = {"Content-Type": "application/json", "User-Agent": "barnabas", **(headers or {})}
        if self._token is not None:
            own["Authorization"] = f"Bearer {self._token}"
        try:
            request = Request(url, json.dumps(body).encode(), own, method="POST")
            with _OPENER.open(request, timeout=TIMEOUT_S) as response:
                response.read1(_READ_BYTES)  # one read only: a body may arrive in small pieces
        except HTTPError as error:
            error.close()
            raise SinkFailed(f"{_without_secrets(url)} answered {error.code}") from None
        except URLError as error:
            raise SinkFailed(f"{_without_secrets(url)}: {_reason(error.reason)}") from None
        except http.client.InvalidURL:  # the error's text contains the URL
            raise SinkFailed(f"{_without_secrets(url)}: the URL is invalid") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SinkFailed(f"{_without_secrets(url)}: {type(error).__name__}") from None


class Alertmanager(Webhook):
    """Posts an incident to Alertmanager's API v2, as an alert with the incident's id among its
    labels."""

    def send(self, notice: Notice) -> None:
        self._post(f"{self._url.rstrip('/')}/api/v2/alerts", [_alert(notice, datetime.now(UTC))])


def _alert(notice: Notice, now: datetime) -> dict[str, Any]:
    """Return an incident as a `postableAlert` for Alertmanager's API."""
    each = notice.incident
    # Alertmanager rejects an end before the start, and treats an alert with an end in the future as
    # firing.
    start = min(each.start, now)
    if notice.status == FIRING:
        end = now + (_OPEN if each.end is None else _SHOWN)
    else:
        end = max(start, min(each.end or now, now))
    return {
        "startsAt": _rfc3339(start),
        "endsAt": _rfc3339(end),
        "labels": {
            "alertname": each.alert,
            "kind": each.kind,
            "subject": each.subject,
            "incident": each.id,
            "job": "barnabas",
        },
        "annotations": {
            "summary": each.summary,
            "lines": "\n".join(line.text for line in notice.lines),
        },
    }


class Mail(Sink):
    """Sends an incident by mail, and its end as a reply to the first message."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._host, self._port = options["host"], options.get("port", 587)
        self._from, self._to = options["from"], options["to"]
        self._is_encrypted = options.get("starttls", True)
        self._user, self._password = options.get("user"), _secret("password", options)
        if (self._user is None) != (self._password is None):
            raise ConfigError(
                "user and a password (password_env or password_file) must be set together"
            )
        if self._user is not None and not self._is_encrypted:
            raise ConfigError("a password is only sent with starttls = true")
        for address in (self._from, *self._to):
            if "@" not in parseaddr(address)[1]:
                raise ConfigError(f"{address!r} is not an email address")

    def send(self, notice: Notice) -> None:
        message = self._message(notice)
        try:
            with smtplib.SMTP(self._host, self._port, timeout=TIMEOUT_S) as server:
                if self._is_encrypted:
                    server.starttls(context=ssl.create_default_context())
                if self._user is not None and self._password is not None:
                    server.login(self._user, self._password)
                refused = server.send_message(message)
        # A server's reply may quote secrets sent to it, so show only its code.
        except smtplib.SMTPResponseException as error:
            raise SinkFailed(f"{self._where} answered {error.smtp_code}") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise SinkFailed(f"{self._where} refused {', '.join(error.recipients)}") from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise SinkFailed(f"{self._where}: {_reason(error)}") from None
        if refused:
            raise SentInPart(f"{self._where} refused {', '.join(refused)}")

    @property
    def _where(self) -> str:
        return f"{self._host}:{self._port}"

    def _message(self, notice: Notice) -> EmailMessage:
        each = notice.incident
        message = EmailMessage()
        message["From"], message["To"] = self._from, ", ".join(self._to)
        mark = "" if notice.status == FIRING else f" ({RESOLVED})"
        # Component and file names may contain line breaks, which are not allowed in a header.
        message["Subject"] = printable(f"[barnabas] {each.alert}: {each.subject}{mark}")
        message["Date"] = datetime.now(UTC)
        first = f"<{each.id}@barnabas.invalid>"
        if notice.status == FIRING:
            message["Message-ID"] = first
        else:
            message["Message-ID"] = make_msgid(domain="barnabas.invalid")
            message["In-Reply-To"] = message["References"] = first
        end = "" if each.end is None else f"\nended    {_rfc3339(each.end)}"
        lines = "\n".join(f"{line.place}\n  {line.text}".strip() for line in notice.lines)
        message.set_content(
            f"{printable(each.summary)}\n\nstarted  {_rfc3339(each.start)}{end}\n"
            f"incident {each.id}\n\n{lines}\n"
        )
        return message


class Topic(Sink):
    """Sends an incident to a topic as JSON, with its id as the key."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._topic, self._servers = options["topic"], options["bootstrap_servers"]
        self._options: dict[str, Any] = {}
        if "command_config" in options:
            from barnabas.client.config import of_every_client
            from barnabas.config import load_properties

            self._options = of_every_client(load_properties(options["command_config"]))

    def send(self, notice: Notice) -> None:
        from barnabas.client.sync.producer import SyncProducer

        limit_ms = int(TIMEOUT_S * 1_000)
        try:
            with SyncProducer(
                self._servers,
                **{
                    **self._options,
                    "acks": "all",
                    "enable_idempotence": True,
                    "request_timeout_ms": limit_ms // 2,
                    "delivery_timeout_ms": limit_ms,
                    "max_block_ms": limit_ms,
                },
            ) as producer:
                value = json.dumps(notice.as_dict()).encode()
                producer.send(self._topic, value, key=notice.incident.id.encode()).result()
        except (BarnabasError, OSError) as error:
            raise SinkFailed(f"topic {self._topic}: {in_one_line(error)}") from None


_SINKS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Sink]]] = MappingProxyType(
    {"webhook": Webhook, "alertmanager": Alertmanager, "mail": Mail, "topic": Topic}
)


class _NoRedirects(HTTPRedirectHandler):
    """Refuses to follow redirects, because urllib would turn the POST into a GET and the incident
    would be lost.
    """

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = build_opener(_NoRedirects)


def _secret(key: str, options: Mapping[str, Any]) -> str | None:
    """Return a secret from the options, the environment or a file. Raises `ConfigError` or
    `OSError`."""
    if (name := options.get(f"{key}_env")) is not None:
        if not (text := os.environ.get(name, "")):
            raise ConfigError(f"{key}_env: the environment variable {name} is not set")
    elif (path := options.get(f"{key}_file")) is not None:
        if not (text := Path(path).read_text("utf-8").strip()):
            raise ConfigError(f"{key}_file: {path} is empty")
    else:
        return options.get(key)
    if not text.isprintable():
        raise ConfigError(f"{key}: it contains characters that cannot be printed")
    return text


def _http_url(url: str | None) -> str:
    assert url is not None  # the rules require it
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or " " in url:
        raise ConfigError("url: an address such as https://host/path is expected")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("url: it must not contain a password; use token_env or token_file")
    return url


def _without_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret, such as the path of a webhook."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..."


def _reason(reason: object) -> str:
    """Return the reason that the operating system gave for a failure."""
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return " ".join(text.split()) or type(reason).__name__


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
