"""Strategies for commits of a metadata store."""

from __future__ import annotations

from hypothesis import strategies as st

from barnabas.cluster.store import Check, Create, Delete, Operation, Set

NAMES = ("a", "b", "c")


PATHS = [f"/{one}" for one in NAMES] + [f"/{one}/{two}" for one in NAMES for two in NAMES]


paths = st.sampled_from(PATHS)


data = st.none() | st.binary(max_size=8)


versions = st.sampled_from([-1, -1, 0, 1])


operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, paths, data, st.just(False), st.booleans()),
    st.builds(Set, paths, data, versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, st.sampled_from([0, 1])),
)


commits = st.lists(operations, min_size=1, max_size=4)
