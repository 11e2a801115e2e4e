"""Names of the record headers of a dead letter, besides those of the record that it was.

reason          why it is no line of an access log
source.topic, source.partition, source.offset
query, batch    which micro-batch of which streaming query has sent it
"""

REASON = "reason"
SOURCE_TOPIC = "source.topic"
SOURCE_PARTITION = "source.partition"
SOURCE_OFFSET = "source.offset"
QUERY = "query"
BATCH = "batch"
