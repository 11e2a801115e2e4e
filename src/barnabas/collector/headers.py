"""Names of the record headers that a collector puts on every line; the values are UTF-8 text.

file            the file's path, for people
file.id         which file it is, whatever its path is by now
file.position   bytes before the line in that file
file.line       number of the line in that file, from 1
host            on which machine the line was collected
file.cut        only on the beginning of a line that was too long: the line's length in bytes
"""

FILE = "file"
FILE_ID = "file.id"
POSITION = "file.position"
LINE = "file.line"
CUT = "file.cut"
HOST = "host"
