"""The table of APIs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.protocol.api import APIS, DESCRIBE_CLUSTER, INIT_PRODUCER_ID, PRODUCE, Api


def test_keys_and_stems() -> None:
    assert APIS[0] is PRODUCE
    assert INIT_PRODUCER_ID.stem == "init_producer_id"
    assert DESCRIBE_CLUSTER.stem == "describe_cluster"
    assert all(APIS[key].key == key for key in APIS)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_api_has_its_messages(api: Api) -> None:
    assert api.request.__name__ == f"{api.name}Request"
    assert api.response.__name__ == f"{api.name}Response"
    assert api.request.__module__ == f"barnabas.protocol.messages.{api.stem}"
    for message in (api.request, api.response):
        for version in range(api.min_version, api.max_version + 1):
            assert (version in message.flexible) == (version >= api.flexible_from)


def test_produce_is_advertised_from_0() -> None:
    """ST-5: librdkafka before 2.11.1 takes a higher minimum for a broker without gzip."""
    assert (PRODUCE.min_version, PRODUCE.max_version) == (0, 11)


def test_messages_are_imported_when_they_are_asked_for() -> None:
    """The start of a broker does not pay for messages, nor for the compiler of the codec."""
    code = (
        "import sys; import barnabas.protocol.frame; "
        "print([name for name in sys.modules if name.startswith('barnabas.protocol.messages')"
        " or name in ('barnabas.protocol.encoder', 'barnabas.protocol.decoder')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
