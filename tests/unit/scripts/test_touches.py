"""Each touch of a file without a storage is found, and counted against the stored counts."""

from __future__ import annotations

import json

import pytest

from scripts.touches import _COUNTS, main, places, risen_touches, touches


@pytest.mark.parametrize(
    "line",
    [
        "os.link(a, b)",
        "shutil.rmtree(path)",
        "from tempfile import mkdtemp",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "open(path)",
        "path.open()",
        "path.open('rb', encoding='utf-8')",
        "path.exists()",
        "folder(name).unlink(missing_ok=True)",
        "(a / b).write_text(text)",
    ],
)
def test_a_touch_is_found(line: str) -> None:
    assert list(touches(f"import x\n{line}")) == [2]


@pytest.mark.parametrize(
    "line",
    [
        "os.getpid()",
        "os.environ['HOME']",
        "os.path.join(a, b)",
        "shutil.which('java')",
        "Store.open(url)",
        "warehouse.exists(relation)",
        "storage.put(name, data)",
        "path.joinpath(name)",
        "'open(path)'",
    ],
)
def test_a_line_that_touches_no_file_is_passed_over(line: str) -> None:
    assert list(touches(line)) == []


def test_tables_touch_no_file_and_the_storage_is_not_counted() -> None:
    rooms = {module.partition("/")[0] for module in places()}

    assert rooms & {"delta", "storage"} == set()
    assert "land" in rooms


def test_the_counts_are_those_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """Else a module that has got rid of some could take them up again."""
    assert json.loads(_COUNTS.read_text()) == {name: len(at) for name, at in places().items()}
    assert main([]) == 0
    assert "touch files directly" in capsys.readouterr().out


def test_a_module_with_more_than_before_is_named_with_its_lines() -> None:
    assert list(risen_touches({}, {"plan/x.py": [3]})) == [
        "livemart/plan/x.py: 1, at most 0: lines 3"
    ]
