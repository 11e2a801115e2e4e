"""Names the headers that a dead letter has in addition to those of the original record.

reason          why the pipeline rejected it
source.topic, source.partition, source.offset
query, batch    the streaming query and the micro-batch that sent it

A dead letter that is sent again has the headers of its line, and also

replayed        the place of the dead letter: topic, partition and offset, separated by blanks
"""

REASON = "reason"
SOURCE_TOPIC = "source.topic"
SOURCE_PARTITION = "source.partition"
SOURCE_OFFSET = "source.offset"
QUERY = "query"
BATCH = "batch"
OF_DEAD_LETTERS = (REASON, SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET, QUERY, BATCH)

REPLAYED = "replayed"
