"""A stream goes from project to project, and back from one that no micro-batch can run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, RefreshError
from livemart.project.graph import Project
from livemart.run.pipeline import RunOutcome
from livemart.run.replays import ProjectEdited
from livemart.run.runtime import Runtime
from livemart.run.stream import Stream

_Step = Callable[["Shop", Any], None]


class _Spark:
    """A session; nothing is asked of it."""


def _project(name: str, *aside: str) -> Any:
    newest = SimpleNamespace(set_aside=dict.fromkeys(aside))
    project, plans = SimpleNamespace(sessions=[]), SimpleNamespace(stored=dict.fromkeys("ab"))
    log = SimpleNamespace(newest=lambda: newest)
    return SimpleNamespace(name=name, project=project, plans=plans, log=log, spark=_Spark())


class Shop:
    """A pipeline, and the follower of its edits, that play what a test has written down.

    `course`: for each run of a pipeline its project, and the models that it was to try again.
    """

    def __init__(self, *steps: _Step) -> None:
        self.steps = list(steps)
        self.edits: list[Any] = []
        self.has_new_edit = False
        self.refusal: str | None = None
        self.course: list[tuple[str, set[str]]] = []
        self.stop = Event()

    def pipeline(self, runtime: Any) -> Any:
        def follow(
            every: timedelta,
            done: RunOutcome,
            interruption: Any,
            *,
            selected: frozenset[str],
        ) -> None:
            self.course.append((runtime.name, set(selected)))
            if not self.steps:
                self.stop.set()
                return
            self.steps.pop(0)(self, interruption)

        return SimpleNamespace(
            runtime=runtime, report=None, stop=self.stop, follow=follow, adopting=self.pipeline
        )

    def follower(self, runtime: Any, report: Any) -> Any:
        return self

    def look(self) -> Any:
        return self.edits.pop(0) if self.edits else None

    def settle(self, stop: Event) -> Any:
        return self.look()

    def has_edits(self) -> bool:
        return self.has_new_edit

    def give_up(self, before: Any, error: Exception) -> None:
        self.refusal = f"back to {before.name}: {error.args[0]}"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Shop], Shop]:
    def play(shop: Shop) -> Shop:
        monkeypatch.setattr("livemart.run.stream.Follower", shop.follower)
        Stream(shop.pipeline(_project("first"))).run(timedelta(seconds=1))
        return shop

    return play


def edited(project: Any) -> _Step:
    def step(shop: Shop, interruption: Any) -> None:
        assert not interruption.is_due()
        shop.edits.append(project)
        assert interruption.is_due() and interruption.is_due(), "it is taken over once"

    return step


def fails(shop: Shop, interruption: Any) -> None:
    raise RefreshError("X", "no table", hint="")


def test_an_edit_is_taken_over_with_the_models_that_were_set_aside(play: Any) -> None:
    shop = play(Shop(edited(_project("second", "a", "gone")), edited(_project("third"))))

    assert shop.course == [("first", set()), ("second", {"a"}), ("third", set())]


def test_a_project_that_cannot_be_begun_with_gives_way_to_the_one_before(play: Any) -> None:
    shop = play(Shop(edited(_project("second")), fails))

    assert [name for name, _ in shop.course] == ["first", "second", "first"]
    assert shop.refusal == "back to first: X: no table"


def test_there_is_no_way_back_once_a_micro_batch_has_run(play: Any) -> None:
    def runs_then_fails(shop: Shop, interruption: Any) -> None:
        interruption.succeeded()
        raise RefreshError("X", "no table", hint="")

    with pytest.raises(LivemartError, match="no table"):
        play(Shop(edited(_project("second")), runs_then_fails))
    with pytest.raises(LivemartError, match="no table"):
        play(Shop(fails))


def test_a_micro_batch_that_ends_while_an_edit_waits_leaves_the_way_back_open(play: Any) -> None:
    def edited_late(shop: Shop, interruption: Any) -> None:
        edited(_project("second"))(shop, interruption)
        interruption.succeeded()

    shop = play(Shop(edited_late, fails))

    assert [name for name, _ in shop.course] == ["first", "second", "first"]


@pytest.mark.parametrize("settled", [None, _project("second")], ids=["refused", "read"])
def test_a_micro_batch_on_an_outdated_project_waits_for_its_files(play: Any, settled: Any) -> None:
    def begins(shop: Shop, interruption: Any) -> None:
        interruption.refuse_outdated()
        shop.has_new_edit = True
        if settled is not None:
            shop.edits.append(settled)
        with pytest.raises(ProjectEdited):
            interruption.refuse_outdated()
        raise ProjectEdited

    shop = play(Shop(begins))

    assert [name for name, _ in shop.course] == ["first", "second" if settled else "first"]


def test_a_refusal_in_the_middle_of_a_run_is_heard_by_it(play: Any) -> None:
    def refused(shop: Shop, interruption: Any) -> None:
        assert not interruption.is_outdated()
        shop.refusal = "it cannot be read"
        assert interruption.is_outdated()

    play(Shop(refused))


def test_what_stays_between_batches_stays_when_an_edit_is_taken_over(tmp_path: Path) -> None:
    project = Project("m", ".", "m", {}, {}, {}, {})
    parts: Any = (None, None, Warehouse(tmp_path), None, project, None, None, {})
    runtime = Runtime(*parts)

    edited = replace(runtime, project=replace(project, name="edited"))

    # Else the views of the tables that it holds would never be dropped.
    assert edited.between_batches is runtime.between_batches
    assert edited.prover.own_faults is runtime.prover.own_faults
