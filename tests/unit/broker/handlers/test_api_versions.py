"""ApiVersions: what is advertised, and how a newer client learns it (KIP-511)."""

from __future__ import annotations

import pytest

from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.protocol.api import API_VERSIONS, APIS, PRODUCE
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(API_VERSIONS.max_version + 1))
def test_the_table_is_advertised_in_every_version(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
    answer = client.call(API_VERSIONS, version, request)
    assert answer.error_code == 0
    assert {(row.api_key, row.min_version, row.max_version) for row in answer.api_keys} == {
        (api.key, api.min_version, api.max_version) for api in APIS.values()
    }


def test_produce_is_advertised_from_0(client: RawClient) -> None:
    """KAFKA-18659: librdkafka before 2.11.1 would send its gzip data uncompressed."""
    answer = client.call(API_VERSIONS, 0, ApiVersionsRequest())
    (row,) = [row for row in answer.api_keys if row.api_key == PRODUCE.key]
    assert row.min_version == 0


def test_a_newer_version_is_answered_in_version_0_with_our_range(client: RawClient) -> None:
    """KIP-511: the body is not parsed, the client retries with what it learns."""
    header = b"\x00\x12\x7f\xff\x00\x00\x00\x07\x00\x03raw\x00"
    body = header + b"whatever a future version holds"
    client.send_bytes(len(body).to_bytes(4, "big") + body)
    correlation_id, answer = client.receive(API_VERSIONS, 0)
    assert correlation_id == 7
    assert answer.error_code == UnsupportedVersion.code
    (row,) = answer.api_keys
    assert (row.api_key, row.min_version, row.max_version) == (18, 0, API_VERSIONS.max_version)


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("raw", ""), ("-raw", "1"), ("a b", "1")]
)
def test_software_names_are_checked(client: RawClient, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert client.call(API_VERSIONS, 3, request).error_code == InvalidRequest.code
