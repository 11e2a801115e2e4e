"""Draws `barnabas partitions watch` during a failover, as the README shows it.

    python examples/failover_picture.py docs/failover.svg

Three brokers run in this process and one of them is stopped; the table is the command's own.
"""

import io
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import barnabas
from barnabas.cli.partitions.table import screen
from barnabas.cli.partitions.watch import Look, Watch
from barnabas.client import NewTopic, SyncAdmin, SyncProducer, TopicPartition

TOPIC = "orders"
STOPPED = 2
COLUMNS, LINES = 100, 30
PATIENCE_S = 30.0
LOOK_EVERY_S = 0.1
LAG_MS = 2_000  # of the stopped broker, in the picture

# As rich has it, without fonts from the network.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "failover.svg")
    with barnabas.Cluster(brokers=3) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
            admin.create_topics([NewTopic(TOPIC, num_partitions=3, replication_factor=3)])
            watch = Watch()
            send(producer, 3_000)
            look(watch, admin)
            cluster.stop_broker(STOPPED)
            send(producer, 1_200)
            after = look(watch, admin)
            deadline = time.monotonic() + PATIENCE_S
            changes = list(after.changes)
            while not shows_the_failover(after) and time.monotonic() < deadline:
                time.sleep(LOOK_EVERY_S)
                after = look(watch, admin)
                changes += after.changes
    path.write_text(picture(after, changes), encoding="utf-8")
    print(f"{path}: {len(after.rows)} partitions, {len(changes)} changes")


def shows_the_failover(last: Look) -> bool:
    """Whether the broker has left each ISR, for so long that its lag is to be seen."""
    stopped = [each for row in last.rows for each in row.replicas if each.broker_id == STOPPED]
    return all(
        not each.is_in_sync and each.lag_ms is not None and each.lag_ms >= LAG_MS
        for each in stopped
    )


def send(producer: SyncProducer, count: int) -> None:
    for number in range(count):
        producer.send(TOPIC, b"%d" % number, key=b"%d" % number)
    producer.flush()


def look(watch: Watch, admin: SyncAdmin) -> Look:
    topics = admin.describe_topics([TOPIC])
    replicas = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in topics
        for each in topic.partitions
    }
    live = {broker.broker_id for broker in admin.describe_cluster().brokers}
    return watch.look(time.time_ns() // 1_000_000, topics, live, admin.replica_ends(replicas))


def picture(last: Look, changes: list) -> str:
    console = Console(
        record=True, width=COLUMNS, height=LINES, file=io.StringIO(), force_terminal=True
    )
    console.print(screen(last.rows, changes, console.size))
    return console.export_svg(
        title="barnabas partitions watch", theme=MONOKAI, code_format=SVG, unique_id="failover"
    )


if __name__ == "__main__":
    main()
