"""Connections: order, cuts, breaks, and requests that arrive too late."""

from __future__ import annotations

from typing import Any

from simulation.network import Network, Reply
from simulation.world import Life, World


class Echo:
    """Answers with the request, unless it is silent."""

    def __init__(self) -> None:
        self.life = Life()
        self.seen: list[Any] = []
        self.is_silent = False

    def receive(self, request: Any, reply: Reply) -> None:
        self.seen.append(request)
        if not self.is_silent:
            reply(request)


def _network(seed: int = 1) -> tuple[World, Network, Echo]:
    world = World(seed)
    network = Network(world)
    echo = Echo()
    network.processes[2] = echo
    return world, network, echo


def test_requests_arrive_in_order_and_answers_come_back() -> None:
    world, network, echo = _network()
    connection = network.connect(1, Life(), 2)
    promises = [connection.call(number, 1000) for number in range(20)]
    world.run_until(200)
    assert echo.seen == list(range(20))
    assert [promise.result() for promise in promises] == list(range(20))


def test_a_cut_is_one_way_and_delays() -> None:
    world, network, echo = _network()
    network.cut(2, 1)
    promise = network.connect(1, Life(), 2).call("hello", 1000)
    world.run_until(100)
    assert echo.seen == ["hello"]
    assert not promise.is_done
    network.heal(2, 1)
    world.run_until(300)
    assert promise.result() == "hello"


def test_patience_ends_and_a_late_request_may_arrive_all_the_same() -> None:
    arrived = []
    for seed in range(20):
        world, network, echo = _network(seed)
        network.cut(1, 2)
        promise = network.connect(1, Life(), 2).call("hello", 500)
        world.run_until(600)
        assert promise.is_done and promise.result() is None
        network.heal(1, 2)
        world.run_until(1000)
        arrived.append(echo.seen == ["hello"])
    assert {True, False} == set(arrived)


def test_nothing_is_late_where_that_is_excluded() -> None:
    for seed in range(20):
        world, network, echo = _network(seed)
        network.cut(1, 2)
        network.connect(1, Life(), 2, may_be_late=False).call("hello", 500)
        world.run_until(600)
        network.heal(1, 2)
        world.run_until(1000)
        assert echo.seen == []


def test_who_is_gone_is_noticed_and_his_successor_gets_nothing_of_his() -> None:
    for seed in range(20):
        world, network, echo = _network(seed)
        network.cut(1, 2)
        connection = network.connect(1, Life(), 2)
        lost = connection.call("first", 5000)
        world.run_until(50)
        echo.life.is_over = True
        network.gone(2)
        successor = network.processes[2] = Echo()
        network.heal(1, 2)
        world.run_until(400)
        assert lost.is_done and lost.result() is None
        assert "first" not in echo.seen
        again = connection.call("second", 1000)
        world.run_until(800)
        assert again.result() == "second"
        assert successor.seen[-1] == "second"


def test_a_paused_process_answers_when_it_is_back() -> None:
    world, network, echo = _network()
    echo.life.paused_until_ms = 300
    promise = network.connect(1, Life(), 2).call("hello", 1000)
    world.run_until(290)
    assert echo.seen == []
    world.run_until(400)
    assert promise.result() == "hello"


def test_a_slow_process_is_slow_in_both_directions() -> None:
    world, network, _ = _network()
    network.slow[2] = 40
    promise = network.connect(1, Life(), 2).call("hello", 1000)
    world.run_until(80)
    assert not promise.is_done
    world.run_until(120)
    assert promise.result() == "hello"


def test_what_stands_still_may_arrive_after_what_was_asked_next() -> None:
    """Only the connection of then is held up, and only from the counted request on."""
    arrived = []
    for seed in range(20):
        world, network, echo = _network(seed)
        connection = network.connect(1, Life(), 2)
        connection.stall(1, 2000)
        first, second = connection.call("first", 500), connection.call("second", 500)
        world.run_until(600)
        third = connection.call("third", 500)
        world.run_until(1500)
        assert (first.result(), second.result(), third.result()) == ("first", None, "third")
        assert echo.seen == ["first", "third"]
        world.run_until(3000)
        arrived.append(echo.seen[2:])
    assert [] in arrived
    assert ["second"] in arrived
