"""IN-7: three incidents, caused by real faults in a real cluster, are explained by the console.

The clicks are those of docs/what-happened.md, and so is the order of the incidents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.kit.foreign import CHECKOUT
from tests.kit.pictures.incidents import INCIDENTS, Incident, Site, site
from tests.kit.pictures.page_picture import tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = CHECKOUT / "docs" / "what-happened.md"
MOST_CLICKS = 2
CAUSES = {
    "A consumer died": ["reports-1", "session timed out"],
    "A rebalance storm": ["checkout-3", "joined", "left"],
    "A follower fell behind": ["broker 2 is", "records behind", "replica.lag.time.max.ms is 5000"],
}
ADVICE = {
    "A consumer died": "check whether the member's process",
    "A rebalance storm": "Look for a member that restarts often",
    "A follower fell behind": "check whether broker 2 is running",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("incidents")) as found:
        yield found


def chapter(title: str) -> str:
    """What the page says about an incident."""
    return PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("incident", INCIDENTS, ids=[each.title for each in INCIDENTS])
def test_the_console_names_the_cause(running: Site, browser: Browser, incident: Incident) -> None:
    """Somebody who opens the console finds the cause with the clicks that the page tells."""
    incident.cause(running)
    began_s = time.monotonic()
    try:
        with tab(browser) as page:
            story = incident.find(page, running.url)
        took_s = time.monotonic() - began_s
    finally:
        incident.repair(running)  # the next incident needs a cluster without faults
    print(f"{incident.title}: its cause is found {took_s:.1f} s after the fault")
    assert [words for words in CAUSES[incident.title] if words not in story.cause] == []
    assert ADVICE[incident.title] in story.advice
    assert len(story.clicks) <= MOST_CLICKS
    told = chapter(incident.title)
    assert [click for click in story.clicks if f"**{click}**" not in told] == []
    assert [each.name for each in story.pictures if f"pictures/{each.name}.svg" not in told] == []
