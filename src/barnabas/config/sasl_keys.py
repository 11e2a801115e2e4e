"""Lists the broker configs of Kafka 3.9 for SASL authentication and delegation tokens."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_SASL = (
    ("connection.failed.authentication.delay.ms", "int", 100, "[0,...]",
     "Pause before a connection that failed to authenticate is closed."),
    ("connections.max.reauth.ms", "long", 0, "",
     "After how long a client has to authenticate again; 0: never."),
    ("barnabas.connections.end.with.user", "boolean", False, "",
     "Whether the open connections of a SCRAM user end when its credentials are deleted."),
    ("sasl.enabled.mechanisms", "list", "GSSAPI", "", "Mechanisms that clients may use."),
    ("sasl.jaas.config", "password", None, "",
     "Credentials in JAAS form, of a listener and a mechanism."),
    ("sasl.mechanism.inter.broker.protocol", "string", "GSSAPI", "", "Mechanism between brokers."),
    ("sasl.server.max.receive.size", "int", 524288, "", "Largest message of an authentication."),
)  # fmt: skip

_OAUTH = (
    ("sasl.oauthbearer.clock.skew.seconds", "int", 30, "", "OAuth: tolerated clock skew."),
    ("sasl.oauthbearer.expected.audience", "list", None, "", "OAuth: required audience of tokens."),
    ("sasl.oauthbearer.expected.issuer", "string", None, "", "OAuth: required issuer of tokens."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "long", 3600000, "", "OAuth: refresh of keys."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "long", 100, "",
     "OAuth: pause before keys are fetched again."),
    ("sasl.oauthbearer.jwks.endpoint.url", "string", None, "", "OAuth: where the keys are."),
    ("sasl.oauthbearer.scope.claim.name", "string", "scope", "", "OAuth: claim of the scope."),
    ("sasl.oauthbearer.sub.claim.name", "string", "sub", "", "OAuth: claim of the user."),
    ("sasl.oauthbearer.token.endpoint.url", "string", None, "",
     "OAuth: where brokers get the tokens by which they authenticate to each other."),
    ("sasl.login.refresh.buffer.seconds", "short", 300, "", "Reserve before such a token ends."),
    ("sasl.login.refresh.min.period.seconds", "short", 60, "", "Pause between two fetches."),
    ("sasl.login.refresh.window.factor", "double", 0.8, "",
     "After which part of its life a token is replaced."),
    ("sasl.login.refresh.window.jitter", "double", 0.05, "", "Random part of that."),
)  # fmt: skip

_KERBEROS = (
    ("sasl.kerberos.kinit.cmd", "string", "/usr/bin/kinit", "", "Kerberos: the kinit command."),
    ("sasl.kerberos.min.time.before.relogin", "long", 60000, "", "Kerberos: pause of refresh."),
    ("sasl.kerberos.principal.to.local.rules", "list", "DEFAULT", "", "Kerberos: user names."),
    ("sasl.kerberos.service.name", "string", None, "", "Kerberos: name of the service."),
    ("sasl.kerberos.ticket.renew.jitter", "double", 0.05, "", "Kerberos: random part of renewal."),
    ("sasl.kerberos.ticket.renew.window.factor", "double", 0.8, "", "Kerberos: when to renew."),
)  # fmt: skip

_LOGIN = (
    ("sasl.login.connect.timeout.ms", "int", None, "",
     "Time to connect to an authentication service."),
    ("sasl.login.read.timeout.ms", "int", None, "", "Time for its answer."),
    ("sasl.login.retry.backoff.max.ms", "long", 10000, "", "Longest pause before a new attempt."),
    ("sasl.login.retry.backoff.ms", "long", 100, "", "Pause before a new attempt."),
    ("sasl.mechanism.controller.protocol", "string", "GSSAPI", "",
     "Mechanism towards a quorum's controllers."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "long", 10000, "",
     "OAuth: longest pause before keys are fetched again."),
)  # fmt: skip

_JAVA = (
    ("principal.builder.class", "class",
     "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", "",
     "Java class that maps a connection to a user."),
    ("sasl.client.callback.handler.class", "class", None, "", "Java class of the client's side."),
    ("sasl.login.callback.handler.class", "class", None, "", "Java class that gets credentials."),
    ("sasl.login.class", "class", None, "", "Java class of an authentication."),
    ("sasl.server.callback.handler.class", "class", None, "", "Java class of the broker's side."),
    ("security.providers", "string", None, "", "Java classes of security providers."),
)  # fmt: skip

_TOKENS = (
    ("delegation.token.expiry.time.ms", "long", 86400000, "[1,...]",
     "How long a token lives without renewal."),
    ("delegation.token.master.key", "password", None, "", "Older name of the token secret."),
    ("delegation.token.max.lifetime.ms", "long", 604800000, "[1,...]", "Longest life of a token."),
    ("barnabas.delegation.tokens.per.user", "int", 5_000, "[1,...]",
     "Most delegation tokens of a user; beyond that none is created. Barnabas's own."),
    ("delegation.token.secret.key", "password", None, "", "Secret from which tokens are made."),
)  # fmt: skip

_TOKEN_CHECKS = (
    ("delegation.token.expiry.check.interval.ms", "long", 3600000, "[1,...]",
     "Time between two checks for expired tokens."),
)  # fmt: skip

SASL_KEYS: dict[str, ConfigKey] = {
    **table(_SASL),
    **table(_OAUTH),
    **table(_KERBEROS, "Kerberos is not supported"),
    **table(_LOGIN, "a failed authentication is tried again with the next connection"),
    **table(_JAVA, "Barnabas runs no Java class"),
    **table(_TOKENS),
    **table(_TOKEN_CHECKS, "expired tokens are removed when the next one is made"),
}
