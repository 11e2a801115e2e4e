"""SE-4: access is decided as a real Kafka 3.9.1 decides, request by request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from barnabas.protocol.api import APIS, METADATA
from tests.kit.acls.acl_brokers import AclBroker, Pair, both_pairs
from tests.kit.acls.cells import Cell, Known, all_cells
from tests.kit.acls.user_cells import USERS, user_cells
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pair, Pair]]:
    with both_pairs(tmp_path_factory.mktemp("acls")) as both:
        yield both


def test_se_4_each_request_is_decided_as_by_kafka(pairs: tuple[Pair, Pair]) -> None:
    judged = _judge(pairs[0], USERS, lambda known: [*all_cells(known), *user_cells(known)])
    assert len(judged) > 2000
    assert {cell.api for cell in judged} == set(APIS.values())
    print(f"{len(judged)} cells of {len(APIS)} APIs decided alike")


def test_se_4_what_no_rule_is_about_is_open_to_everybody_if_so_configured(
    pairs: tuple[Pair, Pair],
) -> None:
    """allow.everyone.if.no.acl.found."""
    assert len(_judge(pairs[1], (), all_cells)) > 2000


def _judge(
    pair: Pair, users: Iterable[str], cells_of: Callable[[Known], Iterable[Cell]]
) -> list[Cell]:
    """Ask both brokers for all cells; they have to answer, and log, the same."""
    with ThreadPoolExecutor(2) as threads:
        known = list(threads.map(lambda one: one.prepare(users), pair))
        cells = [list(cells_of(each)) for each in known]
        ours, kafka = threads.map(
            lambda asked: list(map(asked[0].decide, asked[1])), zip(pair, cells, strict=True)
        )
    different = [
        f"{cell.api.name} {cell.version} from {cell.host}, {cell.what}:\n  {one}\n  {other}"
        for cell, one, other in zip(cells[0], ours, kafka, strict=True)
        if one != other and not _is_made_sooner(cell, one, other)
    ]
    assert not different, "\n".join(
        [f"{len(different)} of {len(cells[0])}, ours above Kafka's", *different]
    )
    _check_denials(*pair)
    return cells[0]


def _check_denials(ours: AclBroker, kafka: AclBroker) -> None:
    """The log has the same lines as Kafka's, each as often."""
    with suppress(AssertionError):  # the difference says more
        wait_until(lambda: ours.denials() == kafka.denials(), 5)
    own, theirs = ours.denials(), kafka.denials()
    assert own == theirs, f"only ours: {own - theirs}\nonly Kafka's: {theirs - own}"
    assert sum(own.values()) > 1000


def _is_made_sooner(cell: Cell, ours: Any, kafka: Any) -> bool:
    """A topic that a Metadata request makes: we answer when it is there, Kafka at once."""
    if cell.api is not METADATA or not cell.what.startswith("making"):
        return False
    codes = [[topic["error_code"] for topic in each["topics"]] for each in (ours, kafka)]
    return codes == [[0], [5]]
