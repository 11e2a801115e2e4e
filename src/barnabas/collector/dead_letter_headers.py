"""Names of the record headers of a dead letter, besides those of the record that it was.

reason          why the pipeline could make nothing of it
source.topic, source.partition, source.offset
query, batch    which micro-batch of which streaming query has sent it

A record that is a dead letter sent again has those of its line, and

replayed        where the dead letter is: topic, partition and offset, with blanks between them
"""

REASON = "reason"
SOURCE_TOPIC = "source.topic"
SOURCE_PARTITION = "source.partition"
SOURCE_OFFSET = "source.offset"
QUERY = "query"
BATCH = "batch"
OF_DEAD_LETTERS = (REASON, SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET, QUERY, BATCH)

REPLAYED = "replayed"
