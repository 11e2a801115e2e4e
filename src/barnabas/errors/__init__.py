"""All errors that Barnabas raises on purpose: one row per error of Kafka's protocol, and ours.

A `KafkaError` is sent to a peer as a code in a response, and raised by our client when it receives
one. The classes are named after Kafka's codes: NOT_CONTROLLER is `NotController`. `CorruptData` and
`OSError` are never sent: on disk they take a log directory offline, on the wire they close the
connection. The rows are those of Kafka 3.9; a row's docstring is its meaning.

Each area has a file with its rows, and every name is imported from here.
"""

# The only public names in these files are the rows and their base classes.
from barnabas.errors.cluster import *  # noqa: F403
from barnabas.errors.coordination import *  # noqa: F403
from barnabas.errors.kafka_error import *  # noqa: F403
from barnabas.errors.partitions import *  # noqa: F403
from barnabas.errors.security import *  # noqa: F403
