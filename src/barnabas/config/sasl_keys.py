"""Lists the broker configs of Kafka 3.9 for SASL authentication and delegation tokens."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_SASL = (
    ("connection.failed.authentication.delay.ms", "int", 100, "[0,...]",
     "Delay before a connection that failed to authenticate is closed."),
    ("connections.max.reauth.ms", "long", 0, "",
     "Time after which a client must re-authenticate; 0 means never."),
    ("barnabas.connections.end.with.user", "boolean", False, "",
     "Whether deleting a SCRAM user's credentials closes its open connections."),
    ("sasl.enabled.mechanisms", "list", "GSSAPI", "", "SASL mechanisms that clients may use."),
    ("sasl.jaas.config", "password", None, "",
     "Credentials of a listener and mechanism, in JAAS format."),
    ("sasl.mechanism.inter.broker.protocol", "string", "GSSAPI", "",
     "SASL mechanism between brokers."),
    ("sasl.server.max.receive.size", "int", 524288, "",
     "Maximum size of an authentication message."),
)  # fmt: skip

_OAUTH = (
    ("sasl.oauthbearer.clock.skew.seconds", "int", 30, "", "OAuth: allowed clock skew."),
    ("sasl.oauthbearer.expected.audience", "list", None, "", "OAuth: required audience of tokens."),
    ("sasl.oauthbearer.expected.issuer", "string", None, "", "OAuth: required issuer of tokens."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "long", 3600000, "",
     "OAuth: refresh interval of keys."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "long", 100, "",
     "OAuth: pause before keys are fetched again."),
    ("sasl.oauthbearer.jwks.endpoint.url", "string", None, "", "OAuth: URL of the keys."),
    ("sasl.oauthbearer.scope.claim.name", "string", "scope", "", "OAuth: name of the scope claim."),
    ("sasl.oauthbearer.sub.claim.name", "string", "sub", "", "OAuth: name of the user claim."),
    ("sasl.oauthbearer.token.endpoint.url", "string", None, "",
     "OAuth: URL of the tokens with which brokers authenticate to each other."),
    ("sasl.login.refresh.buffer.seconds", "short", 300, "",
     "Time reserved before such a token expires."),
    ("sasl.login.refresh.min.period.seconds", "short", 60, "",
     "Minimum pause between two fetches."),
    ("sasl.login.refresh.window.factor", "double", 0.8, "",
     "Part of a token's lifetime after which it is replaced."),
    ("sasl.login.refresh.window.jitter", "double", 0.05, "", "Random part that is added to it."),
)  # fmt: skip

_KERBEROS = (
    ("sasl.kerberos.kinit.cmd", "string", "/usr/bin/kinit", "", "Kerberos: the kinit command."),
    ("sasl.kerberos.min.time.before.relogin", "long", 60000, "",
     "Kerberos: minimum pause between refreshes."),
    ("sasl.kerberos.principal.to.local.rules", "list", "DEFAULT", "",
     "Kerberos: rules that map principals to user names."),
    ("sasl.kerberos.service.name", "string", None, "", "Kerberos: service name."),
    ("sasl.kerberos.ticket.renew.jitter", "double", 0.05, "",
     "Kerberos: random part of the renewal time."),
    ("sasl.kerberos.ticket.renew.window.factor", "double", 0.8, "", "Kerberos: when to renew."),
)  # fmt: skip

_LOGIN = (
    ("sasl.login.connect.timeout.ms", "int", None, "",
     "Timeout of a connection to an authentication service."),
    ("sasl.login.read.timeout.ms", "int", None, "", "Timeout of its response."),
    ("sasl.login.retry.backoff.max.ms", "long", 10000, "", "Maximum pause before a new attempt."),
    ("sasl.login.retry.backoff.ms", "long", 100, "", "Pause before a new attempt."),
    ("sasl.mechanism.controller.protocol", "string", "GSSAPI", "",
     "SASL mechanism for connections to a quorum's controllers."),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "long", 10000, "",
     "OAuth: maximum pause before keys are fetched again."),
)  # fmt: skip

_JAVA = (
    ("principal.builder.class", "class",
     "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", "",
     "Java class that maps a connection to a user."),
    ("sasl.client.callback.handler.class", "class", None, "", "Java class of the client's side."),
    ("sasl.login.callback.handler.class", "class", None, "",
     "Java class that obtains credentials."),
    ("sasl.login.class", "class", None, "", "Java class of a login."),
    ("sasl.server.callback.handler.class", "class", None, "", "Java class of the broker's side."),
    ("security.providers", "string", None, "", "Java classes of security providers."),
)  # fmt: skip

_TOKENS = (
    ("delegation.token.expiry.time.ms", "long", 86400000, "[1,...]",
     "How long a token lives without renewal."),
    ("delegation.token.master.key", "password", None, "", "Deprecated name of the token secret."),
    ("delegation.token.max.lifetime.ms", "long", 604800000, "[1,...]",
     "Maximum lifetime of a token."),
    ("barnabas.delegation.tokens.per.user", "int", 5_000, "[1,...]",
     "Maximum number of delegation tokens of a user. Specific to Barnabas."),
    ("delegation.token.secret.key", "password", None, "",
     "Secret from which tokens are generated."),
)  # fmt: skip

_TOKEN_CHECKS = (
    ("delegation.token.expiry.check.interval.ms", "long", 3600000, "[1,...]",
     "Interval of checks for expired tokens."),
)  # fmt: skip

SASL_KEYS: dict[str, ConfigKey] = {
    **table(_SASL),
    **table(_OAUTH),
    **table(_KERBEROS, "Kerberos is not supported"),
    **table(_LOGIN, "a failed authentication is retried with the next connection"),
    **table(_JAVA, "Barnabas cannot run Java classes"),
    **table(_TOKENS),
    **table(_TOKEN_CHECKS, "expired tokens are removed when the next one is created"),
}
