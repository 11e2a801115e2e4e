"""An identity provider on this machine: signed tokens for clients that know their secret."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.kit.signed_tokens import claims, signer

SECRET = "planted-secret-of-clients"


class TokenProvider:
    """What it is asked, and how it answers; anybody is who knows `SECRET`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []  # the forms
        self.life_s = 300
        self.status = 200
        self.body: bytes | None = None  # instead of a token
        self.location = ""  # of a redirection
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, authorization: str, form: bytes) -> tuple[int, bytes]:
        self.asked.append(parse_qs(form.decode()))
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client, _, secret = pair.partition(":")
        if secret != SECRET:
            return 401, b'{"error":"invalid_client","error_description":"who are you"}'
        if self.body is not None:
            return self.status, self.body
        now_s = int(time.time())
        token = signer().sign(claims(now_s, sub=client, exp=now_s + self.life_s))
        return self.status, json.dumps({"access_token": token, "token_type": "Bearer"}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"]))
                status, body = provider.answer(self.headers["Authorization"], form)
                self.send_response(status)
                if provider.location:
                    self.send_header("Location", provider.location)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


@contextlib.contextmanager
def token_provider() -> Iterator[TokenProvider]:
    provider = TokenProvider()
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()
