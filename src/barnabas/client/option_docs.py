"""Holds a unit and a sentence for each option of the clients, for the page of client options. Pure.

Lists the options in the order of `client.config`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class OptionDoc(NamedTuple):
    """Describes an option to its user."""

    unit: str  # "ms", "bytes"; "": none
    sentence: str


BOOTSTRAP_SERVERS: Final = OptionDoc(
    "", "Brokers to ask first, `HOST:PORT,...`; the others are found through any of them."
)

OPTION_DOCS: Final[Mapping[str, OptionDoc]] = MappingProxyType(
    {
        # of every client
        "client_id": OptionDoc("", "The client's name in the brokers' logs and metrics."),
        "request_timeout_ms": OptionDoc(
            "ms", "How long a request waits for its answer before the connection is given up."
        ),
        "default_api_timeout_ms": OptionDoc(
            "ms", "How long a method retries before it raises the last error."
        ),
        "metadata_max_age_ms": OptionDoc(
            "ms", "After this time brokers, topics and leaders are asked for again."
        ),
        "metadata_max_idle_ms": OptionDoc(
            "ms", "A topic that was not used for this time is no longer asked for."
        ),
        "reconnect_backoff_ms": OptionDoc(
            "ms", "The pause before a broker is connected to again; it doubles each time."
        ),
        "reconnect_backoff_max_ms": OptionDoc("ms", "The longest such pause."),
        "retry_backoff_ms": OptionDoc(
            "ms", "The pause before a failed request is repeated; it doubles each time."
        ),
        "retry_backoff_max_ms": OptionDoc("ms", "The longest such pause."),
        "socket_connection_setup_timeout_ms": OptionDoc(
            "ms", "How long it may take to set up a connection."
        ),
        # of security
        "security_protocol": OptionDoc(
            "", "How to connect: with or without encryption and authentication."
        ),
        "sasl_mechanism": OptionDoc(
            "", "The SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."
        ),
        "sasl_jaas_config": OptionDoc(
            "",
            "User and password in Java's form, "
            "`org.apache.kafka.common.security.scram.ScramLoginModule required username=... "
            "password=...;`.",
        ),
        "sasl_plain_username": OptionDoc(
            "", "The user, for PLAIN and SCRAM; instead of `sasl.jaas.config`."
        ),
        "sasl_plain_password": OptionDoc("", "The user's password."),
        "sasl_oauth_token_provider": OptionDoc(
            "", "For OAUTHBEARER: a callable that returns a token, or an object with a `token`."
        ),
        "sasl_oauthbearer_token_endpoint_url": OptionDoc(
            "",
            "The same from a provider, `https:`, by `clientId`, `clientSecret` and `scope` in "
            "`sasl.jaas.config`; or a `file:`.",
        ),
        "sasl_login_refresh_window_factor": OptionDoc(
            "", "After this part of a token's life the next one is fetched."
        ),
        "sasl_login_refresh_window_jitter": OptionDoc("", "The random part that is added to it."),
        "sasl_login_refresh_min_period_seconds": OptionDoc(
            "", "The least pause between two fetches, in seconds, where a token lives that long."
        ),
        "sasl_login_refresh_buffer_seconds": OptionDoc(
            "", "The reserve before a token's end, in seconds, where it lives that long."
        ),
        # of TLS
        "ssl_truststore_type": OptionDoc("", "The truststore's form: JKS, PKCS12 or PEM."),
        "ssl_truststore_location": OptionDoc(
            "", "The file with the authorities to trust; unset, those of the system."
        ),
        "ssl_truststore_password": OptionDoc("", "That file's password, unless it is PEM."),
        "ssl_truststore_certificates": OptionDoc(
            "", "The authorities themselves, as PEM, instead of a file."
        ),
        "ssl_keystore_type": OptionDoc("", "The keystore's form: JKS, PKCS12 or PEM."),
        "ssl_keystore_location": OptionDoc(
            "", "The file with the client's own key and certificates, if brokers ask for them."
        ),
        "ssl_keystore_password": OptionDoc("", "That file's password, unless it is PEM."),
        "ssl_keystore_key": OptionDoc("", "The private key itself, as PEM, instead of a file."),
        "ssl_keystore_certificate_chain": OptionDoc(
            "", "Its certificates, as PEM, the own one first."
        ),
        "ssl_key_password": OptionDoc("", "The private key's password, if it has one."),
        "ssl_endpoint_identification_algorithm": OptionDoc(
            "", "`https`: a broker's certificate must be for the host connected to; empty: not."
        ),
        "ssl_enabled_protocols": OptionDoc("", "Versions of TLS, of TLSv1.2 and TLSv1.3."),
        "ssl_protocol": OptionDoc("", "Kafka's preferred version; the newest common one is taken."),
        "ssl_cipher_suites": OptionDoc(
            "", "Cipher suites by IANA's names; unset, OpenSSL's own choice."
        ),
        "ssl_crl_location": OptionDoc(
            "", "File or directory with every authority's list of revoked certificates (CRL)."
        ),
        # of the producer
        "acks": OptionDoc(
            "",
            "Who must have a record before it is acknowledged: `all` in-sync replicas, the leader "
            "(1), or no broker (0).",
        ),
        "batch_size": OptionDoc(
            "bytes", "A partition's records go together until their batch is this large."
        ),
        "linger_ms": OptionDoc("ms", "How long a batch waits for more records."),
        "compression_type": OptionDoc("", "The codec of batches: none, gzip, snappy, lz4 or zstd."),
        "enable_idempotence": OptionDoc(
            "", "Whether retries write no record twice and keep the order; needs `acks=all`."
        ),
        "max_in_flight_requests_per_connection": OptionDoc(
            "", "Requests to a broker without an answer yet; with idempotence at most 5."
        ),
        "max_request_size": OptionDoc("bytes", "The largest request, and so the largest record."),
        "buffer_memory": OptionDoc(
            "bytes", "All records that are not acknowledged yet; a `send` beyond it waits."
        ),
        "max_block_ms": OptionDoc(
            "ms", "How long a `send` waits for room or for a topic's metadata."
        ),
        "delivery_timeout_ms": OptionDoc(
            "ms",
            "A record without an acknowledgement after this time fails, retries included; at least "
            "`linger.ms` + `request.timeout.ms`.",
        ),
        "retries": OptionDoc(
            "", "How often a batch is repeated; better limited by `delivery.timeout.ms`."
        ),
        "partitioner": OptionDoc(
            "",
            "Where records without a key go: sticky (a batch to one partition), round-robin, "
            "random-until-refresh, or a callable `(topic, key, partitions) -> partition`.",
        ),
        "allow_auto_create_topics": OptionDoc(
            "",
            "Whether a send, a subscription or an assignment may create its topic, if the brokers "
            "allow it as well. A client that merely knows a topic never brings it back.",
        ),
        "transactional_id": OptionDoc(
            "", "The name of a producer of transactions, the same after a restart; empty: none."
        ),
        "transaction_timeout_ms": OptionDoc(
            "ms", "A transaction that is open for longer is aborted by its coordinator."
        ),
        "key_serializer": OptionDoc(
            "", "Makes bytes of keys: a name such as `string` or `json`, or a callable."
        ),
        "value_serializer": OptionDoc("", "The same for values."),
        "interceptor_classes": OptionDoc(
            "", "Objects that see each record and its outcome, or the names of their classes."
        ),
        # of the consumer
        "fetch_min_bytes": OptionDoc("bytes", "A broker waits until it has this much."),
        "fetch_max_wait_ms": OptionDoc("ms", "... or this time has passed."),
        "fetch_max_bytes": OptionDoc("bytes", "The most that one answer should have."),
        "max_partition_fetch_bytes": OptionDoc("bytes", "The most of one partition in an answer."),
        "queued_max_messages_kbytes": OptionDoc(
            "KiB",
            "What is fetched ahead of the polls, of all partitions together, by librdkafka's name.",
        ),
        "max_poll_records": OptionDoc("", "The most records that `poll` returns."),
        "auto_offset_reset": OptionDoc(
            "",
            "Where reading begins without a committed offset, or with one that is gone: earliest, "
            "latest, or none (an error).",
        ),
        "isolation_level": OptionDoc(
            "", "read_committed leaves out what transactions have not committed."
        ),
        "check_crcs": OptionDoc("", "Whether the checksum of each batch is verified."),
        "client_rack": OptionDoc(
            "", "Where the consumer is, to read from a replica there (`replica.selector.class`)."
        ),
        "group_id": OptionDoc(
            "", "The group that shares the partitions and keeps the offsets; empty: none."
        ),
        "group_instance_id": OptionDoc(
            "",
            "The name of a static member, which keeps its partitions over a restart. Of two "
            "consumers with one name the first is fenced, for good.",
        ),
        "session_timeout_ms": OptionDoc(
            "ms", "A member without a heartbeat for this time is removed from the group."
        ),
        "heartbeat_interval_ms": OptionDoc("ms", "The time between heartbeats."),
        "max_poll_interval_ms": OptionDoc(
            "ms", "A member that does not poll for this time leaves the group."
        ),
        "partition_assignment_strategy": OptionDoc(
            "", "Strategies by preference: range, roundrobin, sticky, cooperative-sticky."
        ),
        "enable_auto_commit": OptionDoc(
            "", "Whether positions are committed from time to time, and at `close`."
        ),
        "auto_commit_interval_ms": OptionDoc("ms", "The time between those commits."),
        "exclude_internal_topics": OptionDoc(
            "", "Whether a subscription by pattern leaves out internal topics."
        ),
        "key_deserializer": OptionDoc(
            "", "Makes values of keys' bytes: a name such as `string` or `json`, or a callable."
        ),
        "value_deserializer": OptionDoc("", "The same for values' bytes."),
    }
)
