"""ListGroups (key 16): returns the groups that this broker coordinates.

Version 3 is flexible, version 4 can filter by state and returns the state (KIP-518), and version 5
does the same with the type (KIP-848).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array


class ListGroupsRequest(Message, flexible="3+"):
    # KIP-518: the names of states. If the list is empty, all states match.
    states_filter: list[str] = field(Array(STRING), versions="4+")
    # KIP-848: the names of types, such as classic. If the list is empty, all types match.
    types_filter: list[str] = field(Array(STRING), versions="5+")


class ListedGroup(Message):
    group_id: str = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, versions="4+", ignorable=True)
    group_type: str = field(STRING, versions="5+", ignorable=True)


class ListGroupsResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    groups: list[ListedGroup] = field(Array(ListedGroup))
