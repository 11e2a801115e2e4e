"""Names of the record headers that a collector puts on what it sends; the values are UTF-8 text.

file            the file's path, for people
file.id         which file it is, whatever its path is by now
file.position   bytes before the line in that file
file.line       number of the line in that file, from 1
host            on which machine the line was collected
file.cut        only on the beginning of a line that was too long: the line's length in bytes

Messages of syslog have `host`, and

syslog.from        address of the sender
syslog.facility    name of the facility (`user`, `local0`), if the message says one
syslog.severity    name of the severity (`err`, `info`), if the message says one
syslog.cut         only on the beginning of a message that was too long: its length in bytes
"""

FILE = "file"
FILE_ID = "file.id"
POSITION = "file.position"
LINE = "file.line"
CUT = "file.cut"
HOST = "host"

SYSLOG_FROM = "syslog.from"
SYSLOG_FACILITY = "syslog.facility"
SYSLOG_SEVERITY = "syslog.severity"
SYSLOG_CUT = "syslog.cut"
