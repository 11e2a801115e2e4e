"""Collects all broker configs for security.

They are loaded when they are first needed, because a broker without security does not need them.

The configs for SASL and delegation tokens are in `sasl_keys.py`. The configs for access control are
in `authorization_keys.py`, so that the class of the authorizer can be checked without loading the
others.
"""

from __future__ import annotations

from barnabas.config.authorization_keys import AUTHORIZATION_KEYS
from barnabas.config.key import ConfigKey, table
from barnabas.config.sasl_keys import SASL_KEYS

# The `ssl.*` configs of a listener.
_TLS = (
    ("barnabas.ssl.crl.location", "string", None, "",
     "File or directory with the certificate revocation lists of all authorities, in PEM or DER; "
     "unset: revocation is not checked. Specific to Barnabas."),
    ("ssl.allow.dn.changes", "boolean", False, "",
     "Whether a new certificate may have another subject."),
    ("ssl.allow.san.changes", "boolean", False, "",
     "Whether a new certificate may lack host names of the old one."),
    ("ssl.cipher.suites", "list", "", "", "Enabled cipher suites."),
    ("ssl.client.auth", "string", "none", "[required, requested, none]",
     "Whether clients must present a certificate."),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "", "Enabled TLS versions."),
    ("ssl.endpoint.identification.algorithm", "string", "https", "",
     "How host names are verified against certificates."),
    ("ssl.key.password", "password", None, "", "Password of the private key."),
    ("ssl.keystore.certificate.chain", "password", None, "",
     "This broker's certificate chain, in PEM."),
    ("ssl.keystore.key", "password", None, "", "This broker's private key, in PEM."),
    ("ssl.keystore.location", "string", None, "", "File with this broker's key and certificates."),
    ("ssl.keystore.password", "password", None, "", "Password of that file."),
    ("ssl.keystore.type", "string", "JKS", "", "Format of that file: JKS, PKCS12 or PEM."),
    ("ssl.principal.mapping.rules", "string", "DEFAULT", "",
     "Rules that map a certificate's subject to a user name."),
    ("ssl.protocol", "string", "TLSv1.3", "", "Preferred TLS version."),
    ("ssl.truststore.certificates", "password", None, "", "Trusted certificates, in PEM."),
    ("ssl.truststore.location", "string", None, "", "File with trusted certificates."),
    ("ssl.truststore.password", "password", None, "", "Password of that file."),
    ("ssl.truststore.type", "string", "JKS", "", "Format of that file: JKS, PKCS12 or PEM."),
)  # fmt: skip

_JAVAS = (
    ("ssl.engine.factory.class", "class", None, "", "Java class that creates TLS engines."),
    ("ssl.keymanager.algorithm", "string", "SunX509", "", "Java's key manager."),
    ("ssl.provider", "string", None, "", "Java's security provider."),
    ("ssl.secure.random.implementation", "string", None, "", "Java's source of randomness."),
    ("ssl.trustmanager.algorithm", "string", "PKIX", "", "Java's trust manager."),
)  # fmt: skip

# The `zookeeper.ssl.*` configs that are not in `zookeeper_keys.py`.
_ZOOKEEPERS_TLS = (
    ("zookeeper.ssl.cipher.suites", "list", None, "",
     "Enabled cipher suites for connections to ZooKeeper."),
    ("zookeeper.ssl.enabled.protocols", "list", None, "",
     "TLS versions for connections to ZooKeeper; unset: zookeeper.ssl.protocol, or TLSv1.2 and "
     "TLSv1.3."),
    ("zookeeper.ssl.protocol", "string", "TLSv1.2", "",
     "TLS version for connections to ZooKeeper if zookeeper.ssl.enabled.protocols is not set."),
    ("zookeeper.ssl.truststore.password", "password", None, "", "Password of that file."),
)  # fmt: skip

_REVOCATION = (
    ("zookeeper.ssl.crl.enable", "boolean", False, "",
     "Whether certificate revocation lists are checked."),
    ("zookeeper.ssl.ocsp.enable", "boolean", False, "", "Whether OCSP checks certificates."),
)  # fmt: skip

# The configs for encrypting passwords in dynamic configs.
_PASSWORDS = (
    ("password.encoder.cipher.algorithm", "string", "AES/CBC/PKCS5Padding", "",
     "Cipher for passwords in dynamic configs."),
    ("password.encoder.iterations", "int", 4096, "[1024,...]", "Iterations of its key derivation."),
    ("password.encoder.key.length", "int", 128, "[8,...]", "Length of its key in bits."),
    ("password.encoder.keyfactory.algorithm", "string", None, "",
     "Algorithm of its key derivation."),
    ("password.encoder.old.secret", "password", None, "",
     "The previous secret, used to decode passwords after a change."),
    ("password.encoder.secret", "password", None, "", "The secret from which its key is derived."),
)  # fmt: skip

SECURITY_KEYS: dict[str, ConfigKey] = {
    **table(_TLS),
    **table(_JAVAS, "Barnabas uses OpenSSL through Python's ssl module"),
    **table(_ZOOKEEPERS_TLS),
    **table(_REVOCATION, "revocation lists are not checked for ZooKeeper's certificates"),
    **SASL_KEYS,
    **AUTHORIZATION_KEYS,
    **table(_PASSWORDS),
}
