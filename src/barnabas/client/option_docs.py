"""Describes each client option and its unit, for the documentation. Pure.

The options are in the same order as in `client.config`; a test compares the two lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class OptionDoc(NamedTuple):
    """The documentation of an option."""

    unit: str  # "ms", "bytes"; "": none
    sentence: str


BOOTSTRAP_SERVERS: Final = OptionDoc(
    "",
    "The brokers to ask first, `HOST:PORT,...`. The client finds the other brokers through them.",
)

OPTION_DOCS: Final[Mapping[str, OptionDoc]] = MappingProxyType(
    {
        # options of every client
        "client_id": OptionDoc("", "The client's name in the brokers' logs and metrics."),
        "request_timeout_ms": OptionDoc(
            "ms",
            "How long a request waits for its response before the client closes the connection.",
        ),
        "default_api_timeout_ms": OptionDoc(
            "ms", "How long a method retries before it raises the last error."
        ),
        "metadata_max_age_ms": OptionDoc(
            "ms",
            "The time after which the client refreshes its list of brokers, topics and leaders.",
        ),
        "metadata_max_idle_ms": OptionDoc(
            "ms",
            "The time after which the client stops requesting the metadata of an unused topic.",
        ),
        "reconnect_backoff_ms": OptionDoc(
            "ms", "The pause before the client reconnects to a broker. It doubles each time."
        ),
        "reconnect_backoff_max_ms": OptionDoc("ms", "The longest such pause."),
        "retry_backoff_ms": OptionDoc(
            "ms", "The pause before the client retries a failed request. It doubles each time."
        ),
        "retry_backoff_max_ms": OptionDoc("ms", "The longest such pause."),
        "socket_connection_setup_timeout_ms": OptionDoc(
            "ms", "How long the client waits for a connection to be set up."
        ),
        # security options
        "security_protocol": OptionDoc(
            "", "How to connect: with or without encryption and authentication."
        ),
        "sasl_mechanism": OptionDoc(
            "", "The SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."
        ),
        "sasl_jaas_config": OptionDoc(
            "",
            "The user and password in Java's form: "
            "`org.apache.kafka.common.security.scram.ScramLoginModule required username=... "
            "password=...;`.",
        ),
        "sasl_plain_username": OptionDoc(
            "", "The user for PLAIN and SCRAM, instead of `sasl.jaas.config`."
        ),
        "sasl_plain_password": OptionDoc("", "The user's password."),
        "sasl_oauth_token_provider": OptionDoc(
            "", "For OAUTHBEARER: a callable that returns a token, or an object with a `token`."
        ),
        "sasl_oauthbearer_token_endpoint_url": OptionDoc(
            "",
            "The `https:` URL of a token provider, or the `file:` URL of a file with a token. The "
            "client takes `clientId`, `clientSecret` and `scope` from `sasl.jaas.config`.",
        ),
        "sasl_login_refresh_window_factor": OptionDoc(
            "", "The fraction of a token's lifetime after which the client fetches the next token."
        ),
        "sasl_login_refresh_window_jitter": OptionDoc(
            "", "The largest random fraction to add to that factor."
        ),
        "sasl_login_refresh_min_period_seconds": OptionDoc(
            "",
            "The shortest pause between two fetches of a token, in seconds, if a token lives that "
            "long.",
        ),
        "sasl_login_refresh_buffer_seconds": OptionDoc(
            "",
            "How long before its expiry a token is replaced at the latest, in seconds, if it lives "
            "that long.",
        ),
        # TLS options
        "ssl_truststore_type": OptionDoc("", "The truststore's format: JKS, PKCS12 or PEM."),
        "ssl_truststore_location": OptionDoc(
            "", "The file with the authorities to trust. By default, the system's authorities."
        ),
        "ssl_truststore_password": OptionDoc("", "That file's password, unless it is PEM."),
        "ssl_truststore_certificates": OptionDoc(
            "", "The authorities to trust, as PEM text instead of a file."
        ),
        "ssl_keystore_type": OptionDoc("", "The keystore's format: JKS, PKCS12 or PEM."),
        "ssl_keystore_location": OptionDoc(
            "", "The file with the client's own key and certificates, if brokers ask for them."
        ),
        "ssl_keystore_password": OptionDoc("", "That file's password, unless it is PEM."),
        "ssl_keystore_key": OptionDoc(
            "", "The client's private key, as PEM text instead of a file."
        ),
        "ssl_keystore_certificate_chain": OptionDoc(
            "", "The certificates of that key, as PEM text, starting with the client's own."
        ),
        "ssl_key_password": OptionDoc("", "The private key's password, if it has one."),
        "ssl_endpoint_identification_algorithm": OptionDoc(
            "",
            "`https`: a broker's certificate must name the connection's host. Empty: no check.",
        ),
        "ssl_enabled_protocols": OptionDoc(
            "", "The versions of TLS that the client offers: TLSv1.2, TLSv1.3 or both."
        ),
        "ssl_protocol": OptionDoc(
            "", "Kafka's preferred version. The client uses the newest common version."
        ),
        "ssl_cipher_suites": OptionDoc(
            "", "The cipher suites, by IANA's names. By default, OpenSSL chooses."
        ),
        "ssl_crl_location": OptionDoc(
            "", "The file or directory with every authority's list of revoked certificates (CRL)."
        ),
        # options of the producer
        "acks": OptionDoc(
            "",
            "Which brokers must have a record before it is acknowledged: `all` in-sync replicas, "
            "the leader (1), or none (0).",
        ),
        "batch_size": OptionDoc(
            "bytes", "The size up to which the producer adds records to a partition's batch."
        ),
        "linger_ms": OptionDoc("ms", "How long a batch waits for more records."),
        "compression_type": OptionDoc("", "The codec of batches: none, gzip, snappy, lz4 or zstd."),
        "enable_idempotence": OptionDoc(
            "",
            "Whether the producer prevents retries from writing a record twice or changing the "
            "order. This needs `acks=all`.",
        ),
        "max_in_flight_requests_per_connection": OptionDoc(
            "",
            "How many requests to a broker may await their response; with idempotence, at most 5.",
        ),
        "max_request_size": OptionDoc(
            "bytes", "The size of the largest request, and so of the largest record."
        ),
        "buffer_memory": OptionDoc(
            "bytes",
            "The memory for records that are not acknowledged yet. When it is full, `send` waits.",
        ),
        "max_block_ms": OptionDoc(
            "ms", "How long a `send` waits for room or for a topic's metadata."
        ),
        "delivery_timeout_ms": OptionDoc(
            "ms",
            "The time, retries included, after which a record without acknowledgement fails. It is "
            "at least `linger.ms` + `request.timeout.ms`.",
        ),
        "retries": OptionDoc(
            "", "How often a batch is retried. Prefer to limit retries with `delivery.timeout.ms`."
        ),
        "partitioner": OptionDoc(
            "",
            "Where records without a key go: sticky (a batch to one partition), round-robin, "
            "random-until-refresh, or a callable `(topic, key, partitions) -> partition`.",
        ),
        "allow_auto_create_topics": OptionDoc(
            "",
            "Whether a send, a subscription or an assignment may create its topic, if the brokers "
            "allow it as well. A client that merely knows a topic never recreates it.",
        ),
        "transactional_id": OptionDoc(
            "",
            "The name of a transactional producer, the same after a restart. Empty: none.",
        ),
        "transaction_timeout_ms": OptionDoc(
            "ms", "The time after which the coordinator aborts an open transaction."
        ),
        "key_serializer": OptionDoc(
            "", "Turns keys into bytes: a name such as `string` or `json`, or a callable."
        ),
        "value_serializer": OptionDoc("", "The same for values."),
        "interceptor_classes": OptionDoc(
            "",
            "Objects that are called with each record and its outcome, or the names of their "
            "classes.",
        ),
        # options of the consumer
        "fetch_min_bytes": OptionDoc(
            "bytes", "How much data a broker waits for before it responds."
        ),
        "fetch_max_wait_ms": OptionDoc(
            "ms", "The longest time that a broker waits for `fetch.min.bytes`."
        ),
        "fetch_max_bytes": OptionDoc("bytes", "The largest size that a response should have."),
        "max_partition_fetch_bytes": OptionDoc(
            "bytes", "The most data of one partition in a response."
        ),
        "queued_max_messages_kbytes": OptionDoc(
            "KiB",
            "How much data is fetched ahead of the polls, for all partitions together. The name is "
            "librdkafka's.",
        ),
        "max_poll_records": OptionDoc("", "The most records that `poll` returns."),
        "auto_offset_reset": OptionDoc(
            "",
            "Where reading begins if no offset is committed, or if the committed offset is gone: "
            "earliest, latest, or none (an error).",
        ),
        "isolation_level": OptionDoc(
            "", "`read_committed` leaves out records that transactions have not committed."
        ),
        "check_crcs": OptionDoc("", "Whether the checksum of each batch is verified."),
        "client_rack": OptionDoc(
            "", "The rack of the consumer, to read from a replica there (`replica.selector.class`)."
        ),
        "group_id": OptionDoc(
            "", "The group that shares the partitions and keeps the offsets. Empty: no group."
        ),
        "group_instance_id": OptionDoc(
            "",
            "The name of a static member, which keeps its partitions across a restart. If two "
            "consumers have the same name, the first is fenced permanently.",
        ),
        "session_timeout_ms": OptionDoc(
            "ms", "The time after which a member without a heartbeat is removed from the group."
        ),
        "heartbeat_interval_ms": OptionDoc("ms", "The time between heartbeats."),
        "max_poll_interval_ms": OptionDoc(
            "ms", "The time after which a member that does not poll leaves the group."
        ),
        "partition_assignment_strategy": OptionDoc(
            "",
            "The strategies in order of preference: range, roundrobin, sticky, cooperative-sticky.",
        ),
        "enable_auto_commit": OptionDoc(
            "", "Whether positions are committed periodically, and at `close`."
        ),
        "auto_commit_interval_ms": OptionDoc("ms", "The time between those commits."),
        "exclude_internal_topics": OptionDoc(
            "", "Whether a subscription by pattern leaves out internal topics."
        ),
        "key_deserializer": OptionDoc(
            "",
            "Turns keys' bytes into values: a name such as `string` or `json`, or a callable.",
        ),
        "value_deserializer": OptionDoc("", "The same for values' bytes."),
    }
)
