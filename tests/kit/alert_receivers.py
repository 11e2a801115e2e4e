"""Receivers of alerts: a web server that keeps what is posted, and a mail server.

with web_receiver() as receiver:     # receiver.url, receiver.posts
with mail_receiver() as receiver:    # receiver.port, receiver.mails
"""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Post(NamedTuple):
    """What was posted, and where to."""

    path: str
    headers: dict[str, str]
    body: Any


class WebReceiver(ThreadingHTTPServer):
    """Answers each post with `status`, after it has kept it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _PostHandler)
        self.posts: list[Post] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _PostHandler(BaseHTTPRequestHandler):
    server: WebReceiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posts.append(Post(self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


class MailReceiver(socketserver.ThreadingTCPServer):
    """Keeps mails, and refuses receivers in `refused`.

    With a TLS context it wants STARTTLS, and then the user and password.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, tls: ssl.SSLContext | None, credentials: tuple[str, str] | None) -> None:
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.tls = tls
        self.credentials = credentials
        self.refused: set[str] = set()
        self.mails: list[EmailMessage] = []
        self.port: int = self.server_address[1]


class _MailHandler(socketserver.BaseRequestHandler):
    """One conversation, by RFC 5321, 3207 and 4954."""

    server: MailReceiver

    def handle(self) -> None:
        self._is_encrypted = self._is_known = False
        self._open()
        self._say("220 ready")
        accepted = 0
        while line := self._file.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            match verb.upper():
                case "EHLO":
                    self._say(
                        f"250-here\r\n250 {'AUTH PLAIN' if self._is_encrypted else 'STARTTLS'}"
                    )
                case "STARTTLS" if self.server.tls is not None:
                    self._say("220 go ahead")
                    self.request = self.server.tls.wrap_socket(self.request, server_side=True)
                    self._is_encrypted = True
                    self._open()
                case "AUTH":
                    _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                    self._is_known = (user, password) == self.server.credentials
                    self._say("235 welcome" if self._is_known else f"535 {password} is wrong")
                case "MAIL" if self.server.credentials is None or self._is_known:
                    self._say("250 ok")
                case "RCPT":
                    is_refused = any(f"<{each}>" in rest for each in self.server.refused)
                    accepted += not is_refused
                    self._say("550 no such user" if is_refused else "250 ok")
                case "DATA" if accepted:
                    self._say("354 go on")
                    self._keep()
                    self._say("250 kept")
                case "RSET":
                    self._say("250 ok")
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("530 not now")

    def _open(self) -> None:
        self._file = self.request.makefile("rb")

    def _say(self, text: str) -> None:
        self.request.sendall(f"{text}\r\n".encode())

    def _keep(self) -> None:
        lines = []
        while (line := self._file.readline()) not in (b".\r\n", b""):
            lines.append(line)
        mail = message_from_bytes(b"".join(lines), policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.server.mails.append(mail)


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    with WebReceiver() as server, _serving(server):
        yield server


@contextmanager
def mail_receiver(
    tls: ssl.SSLContext | None = None, credentials: tuple[str, str] | None = None
) -> Iterator[MailReceiver]:
    with MailReceiver(tls, credentials) as server, _serving(server):
        yield server


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
