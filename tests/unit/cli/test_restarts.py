"""When a supervised process is started, started again, killed, or given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livemart.cli.restarts import LONG_LIFE_S, SILENCE_S, START_S, Life, NextStep, next_step

RUNNING = Life().begun(100.0)
READY = replace(RUNNING, was_ready=True)


def test_a_process_is_started_and_left_alone_however_slow_it_is() -> None:
    assert next_step(Life(), 0.0) is NextStep.START
    assert next_step(RUNNING, 1e6) is NextStep.WAIT
    assert next_step(READY, 1e6) is NextStep.WAIT


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_process_that_ends_by_itself_before_it_was_ready_is_given_up(code: int) -> None:
    assert next_step(RUNNING.ended(101.0, code), 101.0) is NextStep.GIVE_UP


@pytest.mark.parametrize("code", [-9, -11, 143], ids=["kill -9", "a crash", "SIGTERM"])
def test_a_process_that_is_ended_from_outside_is_started_again(code: int) -> None:
    life = RUNNING.ended(101.0, code)

    assert next_step(life, 101.0) is NextStep.WAIT
    assert next_step(life, 102.0) is NextStep.START


@pytest.mark.parametrize("code", [0, 1, 2, -9])
def test_after_the_first_readiness_every_end_is_followed_by_a_start(code: int) -> None:
    life = READY.ended(101.0, code)
    assert next_step(life, 102.0) is NextStep.START

    # Also if the next one is never ready.
    again = life.begun(102.0).ended(103.0, 2)
    assert next_step(again, 103.0) is NextStep.WAIT
    assert next_step(again, 105.0) is NextStep.START


def test_pauses_double_up_to_a_minute_and_begin_again_after_a_long_life() -> None:
    life, pauses = READY, []
    for _ in range(9):
        life = life.begun(0.0).ended(1.0, 1)
        pauses.append(life.pause_s)

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert life.begun(0.0).ended(LONG_LIFE_S, 1).pause_s == 1


def test_a_thousand_short_lives_are_counted_without_an_overflow() -> None:
    assert replace(READY, short_lives=5_000).ended(101.0, 1).pause_s == 60


def test_a_server_that_answers_nobody_is_killed() -> None:
    asked = replace(READY, answered_at=200.0)

    assert next_step(asked, 200.0 + SILENCE_S) is NextStep.WAIT
    assert next_step(asked, 200.1 + SILENCE_S) is NextStep.KILL


def test_a_server_has_longer_for_its_first_answer() -> None:
    starting = Life().begun(100.0, is_asked=True)

    assert next_step(starting, 100.0 + START_S) is NextStep.WAIT
    assert next_step(starting, 100.1 + START_S) is NextStep.KILL
    assert next_step(starting.ready(101.0), 101.1 + SILENCE_S) is NextStep.KILL
