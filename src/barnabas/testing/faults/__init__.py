"""Injects faults by rules: errors, delays, closed connections and lost responses.

    with broker.faults.add(api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER", count=3):
        application.run()

Use `Broker.faults` and `Cluster.faults`; `docs/testing-faults.md` describes the rules. Modules in
this package refer to request fields by name, so rules work for every API.
"""

from __future__ import annotations

from barnabas.testing.faults.rule import Rule, RuleNotHit

__all__ = ["Rule", "RuleNotHit"]
