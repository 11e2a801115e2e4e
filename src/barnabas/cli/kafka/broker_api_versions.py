"""Implements `kafka-broker-api-versions.sh`, which prints the API versions that each broker
supports.

Kafka also prints the version that its own client would use, so this module lists the versions of a
3.9 client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import click

from barnabas._version import __version__
from barnabas.cli.kafka.options import Given, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    Line,
    NotCovered,
    Tool,
    admin_of,
    servers,
)
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import BrokerDescription
from barnabas.client.channel import BrokerAddress, Channel, system_seams
from barnabas.client.config import ClientConfig
from barnabas.protocol.api import API_VERSIONS, APIS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

Versions = Mapping[int, tuple[int, int]]

_OTHERS: Final = {
    17: ("SaslHandshake", 1),
    29: ("DescribeAcls", 3),
    30: ("CreateAcls", 3),
    31: ("DeleteAcls", 3),
    36: ("SaslAuthenticate", 2),
    38: ("CreateDelegationToken", 3),
    39: ("RenewDelegationToken", 2),
    40: ("ExpireDelegationToken", 2),
    41: ("DescribeDelegationToken", 3),
    48: ("DescribeClientQuotas", 1),
    49: ("AlterClientQuotas", 1),
    50: ("DescribeUserScramCredentials", 0),
    51: ("AlterUserScramCredentials", 0),
    55: ("DescribeQuorum", 2),
    57: ("UpdateFeatures", 1),
    58: ("Envelope", 0),
    64: ("UnregisterBroker", 0),
    68: ("ConsumerGroupHeartbeat", 0),
    69: ("ConsumerGroupDescribe", 0),
    71: ("GetTelemetrySubscriptions", 0),
    72: ("PushTelemetry", 0),
    74: ("ListClientMetricsResources", 0),
    75: ("DescribeTopicPartitions", 0),
    76: ("ShareGroupHeartbeat", 0),
    77: ("ShareGroupDescribe", 0),
    78: ("ShareFetch", 0),
    79: ("ShareAcknowledge", 0),
    80: ("AddRaftVoter", 0),
    81: ("RemoveRaftVoter", 0),
    83: ("InitializeShareGroupState", 0),
    84: ("ReadShareGroupState", 0),
    85: ("WriteShareGroupState", 0),
    86: ("DeleteShareGroupState", 0),
    87: ("ReadShareGroupStateSummary", 0),
}
"""The APIs in Kafka 3.9 that Barnabas lacks, with their latest versions."""


def explain(given: Given) -> list[Line]:
    """Raise NotCovered: `barnabas` has no such command."""
    servers(given)
    raise NotCovered(
        "`barnabas` has no command of its own for this; without --explain, this line runs unchanged"
    )


def run(given: Given) -> int:
    """Print the versions that each broker supports, and the one that a 3.9 client would use."""
    click.echo(run_client(_all_brokers(given)), nl=False)
    return EXIT_OK


async def _all_brokers(given: Given) -> str:
    async with admin_of(given) as admin:
        brokers = (await admin.describe_cluster()).brokers
    return "".join([broker_text(broker, await _versions(broker)) for broker in brokers])


async def _versions(broker: BrokerDescription) -> Versions:
    """Return the versions of each API that a broker supports."""
    node = BrokerAddress(broker.broker_id, broker.host, broker.port)
    # Ask each broker directly, because brokers may differ during a rolling upgrade.
    channel = Channel(node, ClientConfig(), system_seams())
    await channel.open()
    try:
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        answer = await channel.send(API_VERSIONS, request, channel.version(API_VERSIONS))
    finally:
        channel.close()
    keys = cast(ApiVersionsResponse, answer).api_keys
    return {key.api_key: (key.min_version, key.max_version) for key in keys}


def broker_text(broker: BrokerDescription, offered: Versions) -> str:
    """Return the lines for one broker."""
    # "usable" is the newest version that both the broker and a 3.9 client support. To show it, the
    # versions of APIs that Barnabas lacks must also be known.
    known = {api.key: (api.name, api.max_version) for api in APIS.values()} | _OTHERS
    lines = [
        f"\t{_line(key, *known.get(key, ('UNKNOWN', -1)), offered.get(key))}"
        for key in sorted(known.keys() | offered.keys())
    ]
    rack = "null" if broker.rack is None else broker.rack
    heading = f"{broker.host}:{broker.port} (id: {broker.broker_id} rack: {rack}) -> (\n"
    return heading + ",\n".join(lines) + "\n)\n"


def _line(key: int, name: str, latest: int, offered: tuple[int, int] | None) -> str:
    if offered is None:
        return f"{name}({key}): UNSUPPORTED"
    low, high = offered
    shown = f"{low}" if low == high else f"{low} to {high}"
    # Kafka prints only the range if a newer broker supports an API that 3.9 lacks.
    if name == "UNKNOWN":
        return f"{name}({key}): {shown}"
    # The broker may no longer support any version that 3.9 supports, as is the case after KIP-896
    # in 4.0.
    usable = min(high, latest)
    use = f"usable: {usable}" if usable >= low else "unusable: node too new"
    return f"{name}({key}): {shown} [{use}]"


TOOL = Tool(
    "This tool helps to retrieve broker version information.",
    values("bootstrap-server=HOST:PORT command-config=FILE"),
    explain,
    run,
    {"broker-list": BROKER_LIST},
)
