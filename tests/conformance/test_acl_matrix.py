"""SE-4: access is decided as a real Kafka 3.9.1 decides, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.protocol.api import FETCH, METADATA, PRODUCE
from tests.kit.acls.acl_brokers import AclBroker, both_brokers
from tests.kit.acls.cells import Cell, all_cells

pytestmark = [pytest.mark.slow, pytest.mark.foreign]
_JUDGED = (PRODUCE, FETCH, METADATA)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AclBroker, AclBroker]]:
    with both_brokers(tmp_path_factory.mktemp("acls")) as both:
        yield both
        for each in both:
            each.close()


def test_se_4_each_request_is_decided_as_by_kafka(brokers: tuple[AclBroker, AclBroker]) -> None:
    with ThreadPoolExecutor(2) as threads:
        known = list(threads.map(AclBroker.prepare, brokers))
        cells = [list(all_cells(each)) for each in known]
        answers = list(
            threads.map(
                lambda pair: list(map(pair[0].decide, pair[1])), zip(brokers, cells, strict=True)
            )
        )
    judged = list(zip(cells[0], *answers, strict=True))
    different = [
        f"{cell.api.name} {cell.version} from {cell.host}, {cell.what}:\n  {ours}\n  {kafka}"
        for cell, ours, kafka in judged
        if ours != kafka and not _is_made_sooner(cell, ours, kafka)
    ]
    assert not different, "\n".join(
        [f"{len(different)} of {len(judged)}, ours above Kafka's", *different]
    )
    assert len(judged) > 2000 and {cell.api for cell, _, _ in judged} > set(_JUDGED)
    print(f"{len(judged)} cells of {len({cell.api for cell, _, _ in judged})} APIs decided alike")


def _is_made_sooner(cell: Cell, ours: Any, kafka: Any) -> bool:
    """A topic that a Metadata request makes: we answer when it is there, Kafka at once."""
    if cell.api is not METADATA or not cell.what.startswith("making"):
        return False
    codes = [[topic["error_code"] for topic in each["topics"]] for each in (ours, kafka)]
    return codes == [[0], [5]]
