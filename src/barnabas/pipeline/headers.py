"""Names of the record headers that the pipeline writes and reads; the values are UTF-8 text.

On every line that the collector sends:

    file            the file's path, for people
    file.id         which file it is, whatever its path is by now
    file.position   bytes before the line in that file
    file.line       number of the line in that file, from 1
    file.cut        only on the beginning of a line that was too long: the line's length in bytes

On a dead letter, besides the headers of the record that it was:

    reason, source.topic, source.partition, source.offset
    query, batch    which micro-batch of which streaming query has sent it
"""

FILE = "file"
FILE_ID = "file.id"
POSITION = "file.position"
LINE = "file.line"
CUT = "file.cut"

REASON = "reason"
SOURCE_TOPIC = "source.topic"
SOURCE_PARTITION = "source.partition"
SOURCE_OFFSET = "source.offset"
QUERY = "query"
BATCH = "batch"
