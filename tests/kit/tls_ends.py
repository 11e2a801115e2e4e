"""Both ends of TLS without sockets: settings of a side from its files, and their handshake."""

from __future__ import annotations

import ssl

from barnabas.security.tls_settings import TlsSettings
from tests.kit.certificates import PemFiles


def tls_settings(files: PemFiles, **others: str) -> TlsSettings:
    own = {
        name.removeprefix("ssl.").replace(".", "_"): value
        for name, value in files.settings().items()
    }
    return TlsSettings(**own)._replace(**others)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """The client's end. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    first = client.wrap_bio(to_client, to_server, server_hostname=host)
    ends = [first, server.wrap_bio(to_server, to_client, server_side=True)]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    return first
