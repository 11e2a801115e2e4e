"""Recognises other protocols by their first bytes, which come where the length of a frame is
expected.
"""

from __future__ import annotations

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")  # an alert and a handshake
_HTTP = (
    *(b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"CONN", b"DELE", b"PATC"),
    *(b"PRI ", b"HTTP"),  # from an HTTP/2 client, and from a server
)


def is_tls(received: bytes) -> bool:
    return len(received) >= 3 and received[:2] in _TLS_RECORDS


def is_http(received: bytes) -> bool:
    return received[:4] in _HTTP


def protocol_of(received: bytes) -> str:
    """Return the protocol that begins with these bytes, or an empty string if the protocol is
    unknown.
    """
    return "TLS" if is_tls(received) else "HTTP" if is_http(received) else ""


def refusal(protocol: str, size: int, max_frame_bytes: int) -> str:
    """Return the reason why a frame of this size is rejected. `protocol` is the actual protocol if
    it is known.
    """
    if protocol == "TLS":
        return (
            "it uses TLS on a listener without TLS: connect to the TLS listener, or set "
            "security.protocol=PLAINTEXT in the client"
        )
    if protocol:
        return (
            f"it speaks {protocol} on a port for Kafka's protocol: use a Kafka client; metrics "
            "have their own port (barnabas.metrics.port)"
        )
    return (
        f"it announced a frame of {size} bytes; at most {max_frame_bytes} are accepted "
        "(socket.request.max.bytes): it is not a Kafka client, or the request is too large"
    )
