"""ApiVersions (key 18): list the supported APIs and their versions.

From version 3 on, the name and version of the client software are validated as in Kafka (KIP-511).
They are not stored.
"""

from __future__ import annotations

import re

from barnabas.broker.context import Context
from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.protocol.api import API_VERSIONS, APIS
from barnabas.protocol.frame import RequestHeader
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMES_SOFTWARE = 3


def handle(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    # Kafka uses the name and the version as metric labels, so only letters, digits, dots and
    # hyphens are valid. The response to an invalid request lists no APIs.
    if context.version >= _NAMES_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=InvalidRequest.code)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in APIS.values()
        ]
    )


def fallback(header: RequestHeader) -> ApiVersionsResponse | None:
    """Return the version 0 response if an ApiVersions request comes from a client that is newer
    than this broker.

    The response lists the versions of ApiVersions that this broker supports (KIP-511). For any
    other request, None is returned.
    """
    if header.api_key != API_VERSIONS.key or header.api_version <= API_VERSIONS.max_version:
        return None
    # This row tells the client which version to use when it retries. Before KIP-511, clients had to
    # guess the version.
    own = ApiVersion(api_key=API_VERSIONS.key, min_version=0, max_version=API_VERSIONS.max_version)
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=[own])
