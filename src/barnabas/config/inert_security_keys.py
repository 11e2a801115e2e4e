"""Broker configs of Kafka 3.9 about security: TLS, SASL, authorization, tokens.

None has an effect yet: only PLAINTEXT listeners are served, and every client may do everything.
Those that promise protection by themselves are refused (`security_claims.py`); the others get a
warning.
"""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_TLS = (
    ("ssl.allow.dn.changes", "boolean", False, "", "Whether new certificates may change the name."),
    ("ssl.allow.san.changes", "boolean", False, "", "Whether they may change host names."),
    ("ssl.cipher.suites", "list", "", "", "Cipher suites that are offered."),
    ("ssl.client.auth", "string", "none", "[required, requested, none]",
     "Whether clients must send a certificate."),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "", "Versions of TLS."),
    ("ssl.endpoint.identification.algorithm", "string", "https", "",
     "How a host name is compared with a certificate."),
    ("ssl.engine.factory.class", "class", None, "", "Java class that makes TLS engines."),
    ("ssl.key.password", "password", None, "", "Password of the private key."),
    ("ssl.keymanager.algorithm", "string", "SunX509", "", "Java's key manager."),
    ("ssl.keystore.certificate.chain", "password", None, "", "Own certificates, as PEM."),
    ("ssl.keystore.key", "password", None, "", "Own private key, as PEM."),
    ("ssl.keystore.location", "string", None, "", "File with the own key and certificates."),
    ("ssl.keystore.password", "password", None, "", "Password of that file."),
    ("ssl.keystore.type", "string", "JKS", "", "Format of that file."),
    ("ssl.principal.mapping.rules", "string", "DEFAULT", "",
     "How a certificate's name becomes a user's."),
    ("ssl.protocol", "string", "TLSv1.3", "", "Version of TLS that is preferred."),
    ("ssl.provider", "string", None, "", "Java's security provider."),
    ("ssl.secure.random.implementation", "string", None, "", "Java's source of randomness."),
    ("ssl.trustmanager.algorithm", "string", "PKIX", "", "Java's trust manager."),
    ("ssl.truststore.certificates", "password", None, "", "Certificates to trust, as PEM."),
    ("ssl.truststore.location", "string", None, "", "File with certificates to trust."),
    ("ssl.truststore.password", "password", None, "", "Password of that file."),
    ("ssl.truststore.type", "string", "JKS", "", "Format of that file."),
)  # fmt: skip

_ZOOKEEPERS_TLS = (
    ("zookeeper.ssl.cipher.suites", "list", None, "", "Cipher suites towards ZooKeeper."),
    ("zookeeper.ssl.crl.enable", "boolean", False, "", "Whether revocation lists are read."),
    ("zookeeper.ssl.enabled.protocols", "list", None, "", "Versions of TLS towards ZooKeeper."),
    ("zookeeper.ssl.ocsp.enable", "boolean", False, "", "Whether OCSP checks certificates."),
    ("zookeeper.ssl.protocol", "string", "TLSv1.2", "", "Version of TLS towards ZooKeeper."),
    ("zookeeper.ssl.truststore.password", "password", None, "", "Password of that file."),
)  # fmt: skip

_SASL = (
    ("connection.failed.authentication.delay.ms", "int", 100, "[0,...]",
     "Pause before a connection that failed to log in is closed."),
    ("connections.max.reauth.ms", "long", 0, "", "After how long a client has to log in again."),
    ("principal.builder.class", "class",
     "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", "",
     "Java class that maps a connection to a user."),
    ("sasl.client.callback.handler.class", "class", None, "", "Java class of the client's side."),
    ("sasl.enabled.mechanisms", "list", "GSSAPI", "", "Mechanisms that clients may use."),
    ("sasl.jaas.config", "password", None, "", "Log-in settings in JAAS form."),
    ("sasl.kerberos.kinit.cmd", "string", "/usr/bin/kinit", "", "Kerberos: the kinit command."),
    ("sasl.kerberos.min.time.before.relogin", "long", 60000, "", "Kerberos: pause of refresh."),
    ("sasl.kerberos.principal.to.local.rules", "list", "DEFAULT", "", "Kerberos: user names."),
    ("sasl.kerberos.service.name", "string", None, "", "Kerberos: name of the service."),
    ("sasl.kerberos.ticket.renew.jitter", "double", 0.05, "", "Kerberos: random part of renewal."),
    ("sasl.kerberos.ticket.renew.window.factor", "double", 0.8, "", "Kerberos: when to renew."),
    ("sasl.login.callback.handler.class", "class", None, "", "Java class that logs in."),
    ("sasl.login.class", "class", None, "", "Java class of a log-in."),
    ("sasl.login.connect.timeout.ms", "int", None, "", "Time to connect to a log-in service."),
    ("sasl.login.read.timeout.ms", "int", None, "", "Time for its answer."),
    ("sasl.login.refresh.buffer.seconds", "short", 300, "", "Reserve before a log-in ends."),
    ("sasl.login.refresh.min.period.seconds", "short", 60, "", "Pause between two refreshes."),
    ("sasl.login.refresh.window.factor", "double", 0.8, "", "When a log-in is refreshed."),
    ("sasl.login.refresh.window.jitter", "double", 0.05, "", "Random part of that."),
    ("sasl.login.retry.backoff.max.ms", "long", 10000, "", "Longest pause before a new attempt."),
    ("sasl.login.retry.backoff.ms", "long", 100, "", "Pause before a new attempt."),
    ("sasl.mechanism.controller.protocol", "string", "GSSAPI", "",
     "Mechanism towards a quorum's controllers."),
    ("sasl.mechanism.inter.broker.protocol", "string", "GSSAPI", "", "Mechanism between brokers."),
    ("sasl.oauthbearer.clock.skew.seconds", "int", 30, "", "OAuth: tolerated clock skew."),
    ("sasl.oauthbearer.expected.audience", "list", None, "", "OAuth: required audience of tokens."),
    ("sasl.oauthbearer.expected.issuer", "string", None, "", "OAuth: required issuer of tokens."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "long", 3600000, "", "OAuth: refresh of keys."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "long", 10000, "",
     "OAuth: longest pause before keys are fetched again."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "long", 100, "",
     "OAuth: pause before keys are fetched again."),
    ("sasl.oauthbearer.jwks.endpoint.url", "string", None, "", "OAuth: where the keys are."),
    ("sasl.oauthbearer.scope.claim.name", "string", "scope", "", "OAuth: claim of the scope."),
    ("sasl.oauthbearer.sub.claim.name", "string", "sub", "", "OAuth: claim of the user."),
    ("sasl.oauthbearer.token.endpoint.url", "string", None, "", "OAuth: where tokens are."),
    ("sasl.server.callback.handler.class", "class", None, "", "Java class of the broker's side."),
    ("sasl.server.max.receive.size", "int", 524288, "", "Largest message of a log-in."),
    ("security.providers", "string", None, "", "Java classes of security providers."),
)  # fmt: skip

_AUTHORIZATION = (
    ("allow.everyone.if.no.acl.found", "boolean", False, "",
     "Whether all users may use resources without ACLs."),
    ("authorizer.class.name", "string", "", "", "Java class that authorizes requests."),
    ("super.users", "string", "", "", "Users without restrictions, as User:name;User:name."),
)  # fmt: skip

_TOKENS = (
    ("delegation.token.expiry.check.interval.ms", "long", 3600000, "[1,...]",
     "Time between two checks for expired tokens."),
    ("delegation.token.expiry.time.ms", "long", 86400000, "[1,...]",
     "How long a token lives without renewal."),
    ("delegation.token.master.key", "password", None, "", "Older name of the token secret."),
    ("delegation.token.max.lifetime.ms", "long", 604800000, "[1,...]", "Longest life of a token."),
    ("delegation.token.secret.key", "password", None, "", "Secret from which tokens are made."),
)  # fmt: skip

_PASSWORDS = (
    ("password.encoder.cipher.algorithm", "string", "AES/CBC/PKCS5Padding", "",
     "Cipher for passwords among dynamic configs."),
    ("password.encoder.iterations", "int", 4096, "[1024,...]", "Rounds of its key derivation."),
    ("password.encoder.key.length", "int", 128, "[8,...]", "Length of its key in bits."),
    ("password.encoder.keyfactory.algorithm", "string", None, "", "Its key derivation."),
    ("password.encoder.old.secret", "password", None, "", "The secret before the last change."),
    ("password.encoder.secret", "password", None, "", "The secret that it starts from."),
)  # fmt: skip

INERT_SECURITY_KEYS: dict[str, ConfigKey] = {
    **table(_TLS, "no listener speaks TLS yet"),
    **table(_ZOOKEEPERS_TLS, "Python's ssl decides this, and its files are PEM"),
    **table(_SASL, "no listener supports SASL yet"),
    **table(_AUTHORIZATION, "there is no authorizer yet"),
    **table(_TOKENS, "there are no delegation tokens yet"),
    **table(_PASSWORDS, "no passwords are kept among dynamic configs"),
}
