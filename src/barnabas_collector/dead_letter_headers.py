"""Names the headers that a dead letter carries in addition to those of the original record.

reason          why the pipeline rejected the record
source.topic, source.partition, source.offset
query, batch    the streaming query and the micro-batch that sent it

A replayed dead letter has the headers of the original record, and also

replayed        the dead letter's topic, partition and offset, separated by blanks
"""

REASON = "reason"
SOURCE_TOPIC = "source.topic"
SOURCE_PARTITION = "source.partition"
SOURCE_OFFSET = "source.offset"
QUERY = "query"
BATCH = "batch"
OF_DEAD_LETTERS = (REASON, SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET, QUERY, BATCH)

REPLAYED = "replayed"
