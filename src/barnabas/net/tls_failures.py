"""Explains why a TLS connection has failed and what should be changed.

The reasons given by OpenSSL are meant for TLS experts. For each common reason, this module
therefore returns a sentence that names the setting to change. If the other side has detected the
failure, only its alert is known.
"""

from __future__ import annotations

import ssl

from barnabas.net.foreign_bytes import is_http

# These are the X509_V_ERR_* codes of OpenSSL that `verify_code` contains.
_NOT_YET_VALID = 9
_EXPIRED = 10
_UNTRUSTED = (2, 18, 19, 20, 21, 24)
_WRONG_NAME = (62, 64)
_REVOKED = 23
_NO_LIST = (3, 33)
_LIST_EXPIRED = 12

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")
_NO_CERTIFICATE = (
    "PEER_DID_NOT_RETURN_A_CERTIFICATE",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "SSLV3_ALERT_BAD_CERTIFICATE",
)
_NOT_TRUSTED_THERE = ("TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_UNKNOWN")
_VERSIONS = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE")
_CIPHERS = (
    "NO_SHARED_CIPHER",
    "SSLV3_ALERT_HANDSHAKE_FAILURE",
    "TLSV1_ALERT_INSUFFICIENT_SECURITY",
)


class TlsFailure(OSError):
    """Raised if no TLS connection is possible. The message is the reason."""

    @classmethod
    def plain_text(cls, received: bytes) -> TlsFailure:
        """Return the failure of a connection that does not begin with TLS."""
        kind = "an HTTP request" if is_http(received) else "plain text"
        return cls(
            f"it sent {kind} to a TLS listener: set security.protocol=SSL in the client, or "
            "connect to a listener without TLS"
        )


class TlsInterrupted(TlsFailure):
    """Raised if the connection has ended before the other side could be accepted or rejected."""


def explain(error: ssl.SSLError | ssl.CertificateError, is_server: bool, host: str | None) -> str:
    """Return a sentence that explains the failure. `host` is the host to which a client wanted to
    connect.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return _about_certificate(error, is_server, host)
    reason = error.reason or "" if isinstance(error, ssl.SSLError) else str(error)
    if reason in _NO_TLS:
        return (
            "it does not use TLS: set security.protocol=SSL in the client, or connect to a "
            "listener without TLS"
            if is_server
            else "the broker does not use TLS on this port: connect to its TLS listener, or "
            "set security.protocol=PLAINTEXT"
        )
    if reason in _NO_CERTIFICATE:
        return (
            "it presented no certificate, but ssl.client.auth=required requires one"
            if is_server
            else "the broker requires a client certificate that it trusts: set "
            "ssl.keystore.location"
        )
    if reason in _NOT_TRUSTED_THERE:
        return (
            "it does not trust this broker's certificate: set ssl.truststore.location in the client"
            if is_server
            else "the broker does not trust this client's certificate: add the authority that "
            "issued it to the broker's ssl.truststore.location"
        )
    if reason == "SSLV3_ALERT_CERTIFICATE_EXPIRED":
        return (
            f"the certificate of this {'broker' if is_server else 'client'} has expired, or the "
            "other side's certificate revocation list has"
        )
    if reason == "SSLV3_ALERT_CERTIFICATE_REVOKED":
        return f"the certificate of this {'broker' if is_server else 'client'} has been revoked"
    if reason in _VERSIONS:
        return (
            "the two sides have no TLS version in common (ssl.enabled.protocols); the lowest is "
            f"1.2 [{reason}]"
        )
    if reason in _CIPHERS:
        return f"the two sides have no cipher suite in common (ssl.cipher.suites) [{reason}]"
    return f"TLS failed: {reason.replace('_', ' ').lower() or error}"


def _about_certificate(
    error: ssl.SSLCertVerificationError, is_server: bool, host: str | None
) -> str:
    whose = "its" if is_server else "the broker's"
    code = error.verify_code
    if code in _WRONG_NAME:
        return (
            f"{whose} certificate is not for {host}: connect by a name in the certificate, give "
            "the broker a certificate for this name, or, on a trusted network, set "
            "ssl.endpoint.identification.algorithm to an empty value"
        )
    if code == _EXPIRED:
        return f"{whose} certificate has expired: renew it"
    if code == _NOT_YET_VALID:
        return f"{whose} certificate is not yet valid: check the clocks of both machines"
    if code == _REVOKED:
        return f"{whose} certificate has been revoked by its authority"
    setting = "barnabas.ssl.crl.location" if is_server else "ssl.crl.location"
    if code in _NO_LIST:
        return (
            f"the certificate revocation list of an authority that issued {whose} certificate is "
            f"missing: add it to {setting}"
        )
    if code == _LIST_EXPIRED:
        return (
            f"a certificate revocation list is too old to accept {whose} certificate: add the "
            f"authority's new list to {setting}"
        )
    if code in _UNTRUSTED:
        return (
            f"{whose} certificate was not issued by a trusted authority "
            f"({error.verify_message}): add its authority's certificate to "
            "ssl.truststore.location"
        )
    return f"{whose} certificate was rejected: {error.verify_message}"
