"""A name has one meaning and says what it holds; the check that says so finds those that do not."""

from __future__ import annotations

from pathlib import Path

from scripts.names import public_names, shared_names, vague_names


def test_names_at_the_top_of_a_module_are_public_unless_underscored() -> None:
    source = "class A: ...\nB: int = 1\n_c = D = 2\nasync def e(): ...\nif True:\n    G = 1"

    assert list(public_names(source)) == ["A", "B", "D", "e"]


def test_a_name_of_two_modules_is_found_with_both(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    for name, text in {"one.py": "State = 1\n_own = 1", "room/two.py": "class State: ..."}.items():
        (tmp_path / name).write_text(text + "\n_own = 2\n")

    assert shared_names(tmp_path) == {"State": [tmp_path / "one.py", tmp_path / "room" / "two.py"]}


def test_variables_that_say_nothing_are_found_wherever_they_are_bound() -> None:
    source = (
        "def find(wanted):\n"
        "    if (found := wanted):\n"
        "        return found\n"
        "    for own, (each, _) in wanted:\n"
        "        foundation = own.found(each)\n"
    )

    assert sorted(vague_names(source)) == [(1, "wanted"), (2, "found"), (4, "each"), (4, "own")]
