"""Recognises other protocols by their first bytes, where the length of a frame was expected."""

from __future__ import annotations

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake
_HTTP = (
    *(b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"CONN", b"DELE", b"PATC"),
    *(b"PRI ", b"HTTP"),  # a client of HTTP/2, and a server's answer
)


def is_tls(received: bytes) -> bool:
    return len(received) >= 3 and received[:2] in _TLS_RECORDS


def is_http(received: bytes) -> bool:
    return received[:4] in _HTTP


def protocol_of(received: bytes) -> str:
    """The protocol that begins so; empty if it is none of these."""
    return "TLS" if is_tls(received) else "HTTP" if is_http(received) else ""


def refusal(protocol: str, size: int, max_frame_bytes: int) -> str:
    """Why a frame that announces this size is refused; `protocol`: what it is instead, if known."""
    if protocol == "TLS":
        return (
            "it speaks TLS to a listener without it: connect to the TLS listener, or set "
            "security.protocol=PLAINTEXT at the client"
        )
    if protocol:
        return (
            f"it speaks {protocol} to a port that speaks Kafka's protocol: connect a Kafka "
            "client to it; metrics have a port of their own (barnabas.metrics.port)"
        )
    return (
        f"it announced a frame of {size} bytes; at most {max_frame_bytes} are accepted "
        "(socket.request.max.bytes): not a Kafka client, or a request too large"
    )
