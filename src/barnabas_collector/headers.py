"""Names the record headers of a collector. Their values are UTF-8 text.

file            the file's path, for human readers
file.id         identifies the file, even if its path has changed
file.position   bytes before the line in that file
file.line       number of the line in that file, from 1
file.fields     only in a file with W3C's `#Fields:` directives: the columns of the line
host            the machine on which the line was collected
file.cut        only on a line that was cut: its full length in bytes

Lines of a container's log also have, where the path and the runtime provide them,

container.id, container.name
container.stream        `stdout` or `stderr`
container.time          when the runtime received the line, as the runtime wrote it
kubernetes.namespace, kubernetes.pod, kubernetes.pod.uid

Syslog messages have `host`, and also

syslog.from        address of the sender
syslog.facility    name of the facility (`user`, `local0`), if the message has one
syslog.severity    name of the severity (`err`, `info`), if the message has one
syslog.cut         only on a message that was cut: its full length in bytes

OTLP records have `host`, and also

otlp.from          address of the sender
otlp.encoding      otlp_proto: the record is an ExportLogsServiceRequest in protobuf
"""

FILE = "file"
FILE_ID = "file.id"
POSITION = "file.position"
LINE = "file.line"
CUT = "file.cut"
FIELDS = "file.fields"
HOST = "host"

CONTAINER_ID = "container.id"
CONTAINER_NAME = "container.name"
CONTAINER_STREAM = "container.stream"
CONTAINER_TIME = "container.time"
KUBERNETES_NAMESPACE = "kubernetes.namespace"
KUBERNETES_POD = "kubernetes.pod"
KUBERNETES_POD_UID = "kubernetes.pod.uid"

SYSLOG_FROM = "syslog.from"
SYSLOG_FACILITY = "syslog.facility"
SYSLOG_SEVERITY = "syslog.severity"
SYSLOG_CUT = "syslog.cut"

OTLP_FROM = "otlp.from"
