"""Injects faults by rules: errors, delays, cut connections and lost responses where a test wants
them.

    with broker.faults.add(api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER", count=3):
        application.run()

Start from `Broker.faults` and `Cluster.faults`; `docs/testing-faults.md` describes the rules. The
modules here look at requests by the names of their fields, so a rule works for every API.
"""

from __future__ import annotations

from barnabas.testing.faults.rule import Rule, RuleNotHit

__all__ = ["Rule", "RuleNotHit"]
