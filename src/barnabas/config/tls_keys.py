"""Broker configs of Kafka 3.9 about TLS: `ssl.*` of listeners, and what `zookeeper.ssl.*` adds."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

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

TLS_KEYS: dict[str, ConfigKey] = {
    **table(_TLS),
    **table(_JAVAS, "TLS is OpenSSL's here, by Python's ssl"),
    **table(_ZOOKEEPERS_TLS),
    **table(_REVOCATION, "no certificate of ZooKeeper is looked up in a revocation list"),
}
