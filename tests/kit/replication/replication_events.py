"""What can happen on the replication stage, each event by name, and what must hold after each."""

from __future__ import annotations

from tests.kit.replication.replication_stage import BROKERS, LAG_MS, Stage

MOST_REQUESTS = 6


class Events:
    """Every event can come at any time; one that is impossible now does nothing."""

    def __init__(self, min_insync: int, *, may_be_unclean: bool) -> None:
        self.stage = Stage(min_insync)
        self._may_be_unclean = may_be_unclean
        self._watermarks: dict[tuple[int, int, int], int] = {}
        self.work(0)

    # --- the controller --------------------------------------------------------------------------

    def elect(self, pick: int) -> None:
        stage = self.stage
        candidates = [one for one in stage.state.isr if one in stage.live]
        if self._may_be_unclean and not candidates:
            candidates = list(stage.live)
        if candidates:
            stage.elect(candidates[pick % len(candidates)])

    def depose(self, pick: int) -> None:
        """Another one leads, and writes; the one that led hears of it later, or never."""
        stage = self.stage
        old = stage.state.leader
        self.elect(pick)
        others = [broker for broker in stage.brokers if broker != old]
        for broker in others[pick % 2 :]:
            stage.tell(broker)
        new = stage.brokers.get(stage.state.leader)
        if new is not None and new.partition.is_leader:
            stage.produce(stage.state.leader, 1 + pick % 3)
            for broker in others[pick % 3 :]:
                self.fetch(broker)
                self.fetch(broker)

    def take_out(self, pick: int) -> None:
        state = self.stage.state
        others = [one for one in state.isr if one != state.leader]
        if others and state.leader in self.stage.live:
            self.stage.take_out(others[pick % len(others)])

    def tell(self, pick: int) -> None:
        broker = pick % len(BROKERS)
        if broker in self.stage.brokers:
            self.stage.tell(broker)

    def kill(self, pick: int) -> None:
        broker = pick % len(BROKERS)
        if broker in self.stage.brokers:
            self.stage.kill(broker)

    def start(self, pick: int) -> None:
        broker = pick % len(BROKERS)
        if broker not in self.stage.brokers:
            self.stage.start(broker)

    # --- proposals -------------------------------------------------------------------------------

    def expire(self, pick: int) -> None:
        stage = self.stage
        stage.now_ms += LAG_MS // 2
        hit = stage.brokers.get(pick % len(BROKERS))
        if hit is not None:
            stage.carry_out(hit, hit.partition.expire(stage.now_ms))

    def judge(self, pick: int) -> None:
        """The answer is lost now and then: the shell asks again."""
        hit = self.stage.brokers.get(pick % len(BROKERS))
        if hit is not None and hit.proposed:
            answer = self.stage.judge(hit.proposed[0])
            if pick % 5:
                hit.answered.append((hit.proposed.pop(0), answer))

    def hear(self, pick: int) -> None:
        hit = self.stage.brokers.get(pick % len(BROKERS))
        if hit is not None and hit.answered:
            effects = hit.partition.on_isr_answer(*hit.answered.pop(0), self.stage.now_ms)
            self.stage.carry_out(hit, effects)

    # --- records ---------------------------------------------------------------------------------

    def produce(self, pick: int) -> None:
        """To any that takes itself for the leader."""
        leaders = self.stage.leaders()
        if leaders:
            self.stage.produce(leaders[pick % len(leaders)], 1 + pick % 4)

    def delete_records(self, pick: int) -> None:
        leader = self.stage.state.leader
        if leader in self.stage.leaders():
            self.stage.delete_records(leader, 1 + pick % 4)

    def ask(self, pick: int) -> None:
        broker = pick % len(BROKERS)
        if broker in self.stage.brokers and len(self.stage.requests) < MOST_REQUESTS:
            self.stage.ask(broker)

    def serve(self, pick: int) -> None:
        requests = self.stage.requests
        if requests:
            self.stage.serve(requests.pop(pick % len(requests)))

    def lose(self, pick: int) -> None:
        requests = self.stage.requests
        if requests:
            requests.pop(pick % len(requests))

    def take(self, pick: int) -> None:
        broker = pick % len(BROKERS)
        hit = self.stage.brokers.get(broker)
        if hit is not None and hit.answers:
            self.stage.take(broker, hit.answers.pop(0))

    def fetch(self, pick: int) -> None:
        """A fetch from its request to what is done about the answer."""
        stage, broker = self.stage, pick % len(BROKERS)
        if broker in stage.brokers:
            before = len(stage.requests)
            stage.ask(broker)
            if len(stage.requests) > before:
                stage.serve(stage.requests.pop())
                self.take(broker)

    def work(self, _: int) -> None:
        """For a moment everything goes as it should."""
        stage = self.stage
        stage.now_ms += 1
        for broker in BROKERS:
            if broker not in stage.brokers:
                continue
            stage.tell(broker)
            self.fetch(broker)
            for _ in range(len(stage.brokers[broker].proposed)):
                self.judge(broker + 2 * len(BROKERS))
            for _ in range(len(stage.brokers[broker].answered)):
                self.hear(broker)

    # --- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        self._check_watermarks()
        self._check_that_logs_match()
        self._check_strong_isr()
        self._check_maximal_isr()

    def _check_watermarks(self) -> None:
        """Within the log, and a leader's never falls."""
        for broker_id, broker in self.stage.brokers.items():
            partition = broker.partition
            assert partition.high_watermark <= broker.disk.log_end_offset
            if partition.is_leader:
                reign = broker_id, broker.epoch, partition.leader_epoch
                assert partition.high_watermark >= self._watermarks.get(reign, 0)
                self._watermarks[reign] = partition.high_watermark

    def _check_that_logs_match(self) -> None:
        """Faults 6, safety 1: the same epoch at an offset, the same records up to there."""
        disks = self.stage.disks
        for one, other in ((0, 1), (0, 2), (1, 2)):
            left, right = disks[one], disks[other]
            start = max(left.log_start_offset, right.log_start_offset)
            end = min(left.log_end_offset, right.log_end_offset)
            ours, theirs = left.between(start, end), right.between(start, end)
            assert len(ours) == len(theirs) == max(0, end - start)
            if ours == theirs:
                continue
            differs = False
            for our, their in zip(ours, theirs, strict=True):
                differs = differs or our != their
                assert not differs or our.epoch != their.epoch, (left.records, right.records)

    def _check_strong_isr(self) -> None:
        """Faults 3, 6: what was seen is on every replica that the controller may elect."""
        stage = self.stage
        if stage.is_unclean:
            return
        for member in stage.state.isr:
            disk = stage.disks[member]
            records, start = disk.records, disk.log_start_offset
            end = start + len(records)
            lost = [
                offset
                for offset, record in stage.visible.items()
                if offset >= start and (offset >= end or records[offset - start] != record)
            ]
            assert not lost, (member, lost[0])

    def _check_maximal_isr(self) -> None:
        """Faults 6, safety 5: the present leader counts the whole of the stored ISR."""
        state = self.stage.state
        broker = self.stage.brokers.get(state.leader)
        if broker is not None and broker.partition.leader_epoch == state.leader_epoch:
            partition = broker.partition
            if partition.partition_epoch == state.partition_epoch or partition.is_changing_isr:
                assert set(partition.maximal_isr) >= set(state.isr)

    def heal(self) -> None:
        """Everything lives, and everything is delivered: all become level and are in sync."""
        stage = self.stage
        for broker in BROKERS:
            self.start(broker)
        if stage.state.leader not in stage.live:
            stage.elect(stage.state.isr[0])
        stage.requests.clear()
        for broker_id in BROKERS:
            stage.brokers[broker_id].answers.clear()
        for _ in range(60):
            self.work(0)
            self.check()
        leader = stage.disks[stage.state.leader]
        end = leader.log_end_offset
        assert [disk.log_end_offset for disk in stage.disks] == [end] * len(BROKERS)
        for broker_id, each in stage.brokers.items():
            assert each.partition.high_watermark == end, broker_id
        assert sorted(stage.state.isr) == list(BROKERS)
        for disk in stage.disks:
            for offset in range(max(disk.log_start_offset, leader.log_start_offset), end):
                assert disk.at(offset) == leader.at(offset)
