from __future__ import annotations

from types import SimpleNamespace

from livemart.observe.listening import listening


def test_a_listener_hears_first_and_passes_on_what_is_told_and_answered() -> None:
    course: list[object] = []

    def step(text: str) -> int:
        course.append(("told", text))
        return 7

    watcher = SimpleNamespace(step=step, width=80)
    told = listening(watcher, lambda event, arguments: course.append((event, arguments)))

    assert (told.step("landing"), told.width) == (7, 80)
    assert course == [("step", ("landing",)), ("told", "landing")]
