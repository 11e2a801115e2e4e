"""Defines all errors that Barnabas raises on purpose: one class for each error of Kafka's protocol,
and our own.

A `KafkaError` is sent to a peer as an error code in a response, and our client raises it when it
receives such a code. The classes are named after Kafka's codes: NOT_CONTROLLER is `NotController`.
`CorruptData` and `OSError` are never sent, because an error on disk takes a log directory offline,
and an error on the wire closes the connection. The classes correspond to the errors of Kafka 3.9,
and the docstring of a class is the meaning of the error.

Each area has a file with its errors, and every name can be imported from here.
"""

# The only public names in these files are the rows and their base classes.
from barnabas.errors.cluster import *  # noqa: F403
from barnabas.errors.coordination import *  # noqa: F403
from barnabas.errors.kafka_error import *  # noqa: F403
from barnabas.errors.partitions import *  # noqa: F403
from barnabas.errors.security import *  # noqa: F403
