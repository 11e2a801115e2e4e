"""A refusal can be sent, whatever was requested, and says the error wherever it stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import APIS, Api
from barnabas.protocol.frame import decode_response, encode_response
from barnabas.testing.faults.refusal import refusal
from tests.kit.random_messages import messages

ANY_API = st.sampled_from([api for api in APIS.values() if api.name != "Metadata"])
UNKNOWN_SERVER_ERROR = -1


@given(st.data(), ANY_API, st.booleans())
def test_tk_4_a_refusal_can_be_sent(data: st.DataObject, api: Api, whole: bool) -> None:
    version = data.draw(st.integers(max(api.min_version, api.oldest_served), api.max_version))
    request = data.draw(messages(api.request, version))
    answer = refusal(api, version, request, UNKNOWN_SERVER_ERROR, whole=whole)
    frame = b"".join(map(bytes, encode_response(api, version, 1, answer)))  # type: ignore[arg-type]
    assert decode_response(api, version, memoryview(frame)[4:])[1] == answer
