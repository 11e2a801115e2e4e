"""Collects all broker configs for security. It is loaded on first use: a broker without security
needs none of them.

SASL and delegation tokens have their own file (`sasl_keys.py`), and so does access control
(`authorization_keys.py`), so that the authorizer's class can be checked without the rest.
"""

from __future__ import annotations

from barnabas.config.authorization_keys import AUTHORIZATION_KEYS
from barnabas.config.key import ConfigKey, table
from barnabas.config.sasl_keys import SASL_KEYS

# The `ssl.*` configs of listeners.
_TLS = (
    ("barnabas.ssl.crl.location", "string", None, "",
     "File or directory with lists of revoked certificates, as PEM or DER, one of every authority; "
     "unset, none is looked up. Barnabas's own."),
    ("ssl.allow.dn.changes", "boolean", False, "", "Whether new certificates may change the name."),
    ("ssl.allow.san.changes", "boolean", False, "", "Whether they may change host names."),
    ("ssl.cipher.suites", "list", "", "", "Cipher suites that are offered."),
    ("ssl.client.auth", "string", "none", "[required, requested, none]",
     "Whether clients must send a certificate."),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "", "Versions of TLS."),
    ("ssl.endpoint.identification.algorithm", "string", "https", "",
     "How a host name is compared with a certificate."),
    ("ssl.key.password", "password", None, "", "Password of the private key."),
    ("ssl.keystore.certificate.chain", "password", None, "", "Own certificates, as PEM."),
    ("ssl.keystore.key", "password", None, "", "Own private key, as PEM."),
    ("ssl.keystore.location", "string", None, "", "File with the own key and certificates."),
    ("ssl.keystore.password", "password", None, "", "Password of that file."),
    ("ssl.keystore.type", "string", "JKS", "", "Format of that file."),
    ("ssl.principal.mapping.rules", "string", "DEFAULT", "",
     "How a certificate's name becomes a user's."),
    ("ssl.protocol", "string", "TLSv1.3", "", "Version of TLS that is preferred."),
    ("ssl.truststore.certificates", "password", None, "", "Certificates to trust, as PEM."),
    ("ssl.truststore.location", "string", None, "", "File with certificates to trust."),
    ("ssl.truststore.password", "password", None, "", "Password of that file."),
    ("ssl.truststore.type", "string", "JKS", "", "Format of that file."),
)  # fmt: skip

_JAVAS = (
    ("ssl.engine.factory.class", "class", None, "", "Java class that makes TLS engines."),
    ("ssl.keymanager.algorithm", "string", "SunX509", "", "Java's key manager."),
    ("ssl.provider", "string", None, "", "Java's security provider."),
    ("ssl.secure.random.implementation", "string", None, "", "Java's source of randomness."),
    ("ssl.trustmanager.algorithm", "string", "PKIX", "", "Java's trust manager."),
)  # fmt: skip

# The `zookeeper.ssl.*` configs, in addition to the keys in `zookeeper_keys.py`.
_ZOOKEEPERS_TLS = (
    ("zookeeper.ssl.cipher.suites", "list", None, "", "Cipher suites towards ZooKeeper."),
    ("zookeeper.ssl.enabled.protocols", "list", None, "",
     "Versions of TLS towards ZooKeeper; unset: zookeeper.ssl.protocol, or TLSv1.2 and TLSv1.3."),
    ("zookeeper.ssl.protocol", "string", "TLSv1.2", "",
     "Version of TLS towards ZooKeeper, where enabled.protocols names none."),
    ("zookeeper.ssl.truststore.password", "password", None, "", "Password of that file."),
)  # fmt: skip

_REVOCATION = (
    ("zookeeper.ssl.crl.enable", "boolean", False, "", "Whether revocation lists are read."),
    ("zookeeper.ssl.ocsp.enable", "boolean", False, "", "Whether OCSP checks certificates."),
)  # fmt: skip

# Passwords in dynamic configs.
_PASSWORDS = (
    ("password.encoder.cipher.algorithm", "string", "AES/CBC/PKCS5Padding", "",
     "Cipher for passwords among dynamic configs."),
    ("password.encoder.iterations", "int", 4096, "[1024,...]", "Rounds of its key derivation."),
    ("password.encoder.key.length", "int", 128, "[8,...]", "Length of its key in bits."),
    ("password.encoder.keyfactory.algorithm", "string", None, "", "Its key derivation."),
    ("password.encoder.old.secret", "password", None, "", "The secret before the last change."),
    ("password.encoder.secret", "password", None, "", "The secret that it starts from."),
)  # fmt: skip

SECURITY_KEYS: dict[str, ConfigKey] = {
    **table(_TLS),
    **table(_JAVAS, "TLS is OpenSSL's here, by Python's ssl"),
    **table(_ZOOKEEPERS_TLS),
    **table(_REVOCATION, "no certificate of ZooKeeper is looked up in a revocation list"),
    **SASL_KEYS,
    **AUTHORIZATION_KEYS,
    **table(_PASSWORDS),
}
