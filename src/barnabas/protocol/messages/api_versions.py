"""ApiVersions (key 18): returns the API versions that the broker supports.

Most clients send it first.

Version 3 is flexible, and adds the name of the client's software (KIP-511) and the features of the
cluster (KIP-584). Version 4 has the same format as version 3, but may list features whose minimum
is 0 (KIP-1022). If the version of a request is too new, the response has version 0, and contains
error 35 and the range of this API.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array


class ApiVersionsRequest(Message, flexible="3+"):
    # KIP-511: used for metrics that distinguish client libraries.
    client_software_name: str = field(STRING, versions="3+", ignorable=True)
    client_software_version: str = field(STRING, versions="3+", ignorable=True)


class ApiVersion(Message):
    api_key: int = field(INT16)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


class SupportedFeatureKey(Message):
    name: str = field(STRING, versions="3+")
    min_version: int = field(INT16, versions="3+")
    max_version: int = field(INT16, versions="3+")


class FinalizedFeatureKey(Message):
    name: str = field(STRING, versions="3+")
    max_version_level: int = field(INT16, versions="3+")
    min_version_level: int = field(INT16, versions="3+")


class ApiVersionsResponse(Message, flexible="3+"):
    error_code: int = field(INT16)
    api_keys: list[ApiVersion] = field(Array(ApiVersion))
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    # KIP-584: the features that this broker supports, each with its range of versions.
    supported_features: list[SupportedFeatureKey] = field(
        Array(SupportedFeatureKey), versions="3+", ignorable=True, tag=0
    )
    finalized_features_epoch: int = field(INT64, versions="3+", ignorable=True, default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = field(
        Array(FinalizedFeatureKey), versions="3+", ignorable=True, tag=2
    )
    # KIP-866: sent only by a KRaft controller.
    zk_migration_ready: bool = field(BOOLEAN, versions="3+", ignorable=True, tag=3)
