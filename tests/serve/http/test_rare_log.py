"""A client decides how often something happens, and not how many lines that costs."""

from __future__ import annotations

import asyncio
import logging

import structlog

from livemart.serve.http.rare_log import RareLog, redirected


def test_a_kind_is_told_at_once_and_then_once_a_minute_with_a_count() -> None:
    now = [0.0]
    log = RareLog(clock=lambda: now[0])

    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            log.tell("connection_ended", "silent", reason="silent")
        log.tell("connection_ended", "slow_head", reason="slow_head")
        now[0] = 61.0
        log.tell("connection_ended", "silent", reason="silent")

    assert [(event["reason"], event.get("more")) for event in told] == [
        ("silent", None),
        ("slow_head", None),
        ("silent", 2),
    ]


def test_what_a_library_logs_is_an_event_by_the_template_of_its_message() -> None:
    logger = logging.getLogger("livemart.tests.library")

    with structlog.testing.capture_logs() as told, redirected(RareLog(), logger.name):
        for number in range(3):
            logger.warning("request %d is not valid\nmore", number)
        logger.info("a request")
        logger.error("cut off by the end of the server", exc_info=asyncio.CancelledError())
    logger.addHandler(logging.NullHandler())
    logger.warning("no one listens any more")

    assert told == [
        {
            "event": "server_warning",
            "log_level": "warning",
            "logger": logger.name,
            "message": "request 0 is not valid",
        }
    ]
    assert logger.propagate
