"""Defines the pipeline for events from pages and apps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from barnabas_pipeline.application import Application
from barnabas_pipeline.behaviour.application import check_log, collecting_lines
from barnabas_pipeline.tracking.definition import Tracking
from barnabas_pipeline.tracking.funnels import Funnel
from barnabas_pipeline.tracking.generator import write_events
from barnabas_pipeline.tracking.goals import Goal
from barnabas_pipeline.tracking.report import write_page


def tracked_events(
    funnels: Sequence[Funnel] = (), goals: Sequence[Goal] = (), key: bytes = b""
) -> Application:
    """Return the pipeline. Its input is a file with one event per line, as JSON, or an access log.

    `key`: the secret with which the visitors of access logs are hashed.
    """
    return Application(
        definition=Tracking(key),
        title="barnabas tracking",
        topic="events",
        partitions=3,
        generate=write_events,
        generated="events-{seed}-{lines}.json",
        check_input=check_log,
        collecting=collecting_lines,
        write_report=partial(write_page, funnels=funnels, goals=goals),
        counted="events",
        expected="events as `barnabas track serve` stores them, or lines of an access log, are "
        "expected; see docs/tracking.md",
    )
