"""Coordinators of groups and of transactions: plain machines over the records of internal topics.

Each machine is the state in one partition of `__consumer_offsets` or `__transaction_state`. Event
and time go in, a `Decision` comes out; state that must survive changes in `apply` alone, for a
record that was just appended and for one that is replayed alike.
"""
