"""Parses HTTP requests with httptools, within the limits of a server that is open to everyone.

uvicorn's protocol for httptools differs from the one for h11 in three ways, which matter here:

- It collects the head of a request, and the trailers of a chunked body, until they are complete,
  however long they are.
- It ignores the body of a request that asks for an upgrade, such as to HTTP/2. Java's HTTP client
  does so by default.
- It accepts HTTP/0.9, and requests with no Host or several.
"""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 16 << 10


class BoundedHttp(HttpToolsProtocol):
    """Closes a connection after `MOST_HEAD_BYTES` that neither end a head nor belong to a body.

    What arrives with one read from the socket is counted only if it continues an earlier read.
    """

    _unused_bytes = 0  # received since the last part of a request was complete

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unused_bytes += len(data)
        try:
            self._feed(data)
        except HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        else:
            if self._unused_bytes > MOST_HEAD_BYTES:
                self.send_400_response("The head of the request is too large.")

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            # The parser takes what follows for another protocol. Read the request again without the
            # header, which a server may ignore.
            head = self._head_without_upgrade()
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn
            self._feed(head + data[upgrade.args[0] :])

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % each for each in self.headers if each[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        self._unused_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._unused_bytes = 0
        if self.parser.get_method() == b"CONNECT" or not self._is_http_1():
            raise ValueError("refused")  # which the parser turns into an HttpParserError
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def _is_http_1(self) -> bool:
        version = self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        return hosts == 1 if version == "1.1" else version == "1.0" and hosts <= 1

    def on_body(self, body: bytes) -> None:
        self._unused_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused_bytes = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()
