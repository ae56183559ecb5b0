"""A seed's file that dbt cannot load is refused before anything runs, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.project.declared.seed_files import read_seed, seed_file_mistakes


def messages(path: Path, content: str | bytes, delimiter: str = ",") -> list[str]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    seed = read_seed(path, delimiter, str(content))
    found = seed_file_mistakes(seed, "seeds/codes.csv", "codes", "seeds/codes.yml:3")
    return [f"{mistake.code}: {mistake.message}" for mistake in found]


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n",
        "\ufeffa,b\r\n1,2\r\n",
        # dbt fills short rows and blank lines with NULL.
        'a,b\n1\n\n"x,\ny",2\n',
        "a,b\n",
        "a",
    ],
)
def test_a_file_that_dbt_loads_is_taken(tmp_path: Path, content: str) -> None:
    assert messages(tmp_path / "codes.csv", content) == []


@pytest.mark.parametrize(
    ("content", "line", "finding"),
    [
        ("", 1, "found no name of a column in the first line"),
        ("\n1,2\n", 1, "found no name of a column in the first line"),
        ('a,b\n"x\ny",2\n1,2,3\n', 4, "found 3 values for 2 columns"),
        (
            "a,b\n1,2,\n1,2\n1,2,3\n",
            2,
            "found 3 values for 2 columns, and so 1 times below",
        ),
        (b"a,b\n\xe9,2\n", 1, "found a character that is not in UTF-8"),
    ],
)
def test_a_file_that_dbt_cannot_load_is_refused(
    tmp_path: Path, content: str | bytes, line: int, finding: str
) -> None:
    assert messages(tmp_path / "codes.csv", content) == [
        f"SEED_FILE_INVALID: seeds/codes.csv:{line}: seed codes: {finding}"
    ]


def test_a_delimiter_of_two_characters_is_refused_where_it_is_set(tmp_path: Path) -> None:
    assert messages(tmp_path / "codes.csv", "a\tb\n", "\\t") == [
        "SEED_FILE_INVALID: seeds/codes.yml:3: seed codes: found delimiter \\t"
    ]


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    assert messages(tmp_path / "codes.csv", "a,b,a\n1,2,3\n") == [
        "MODEL_COLUMN_TWICE: seeds/codes.csv:1: seed codes: columns.a: found a 2 times"
    ]


def test_a_column_without_a_name_has_the_letter_that_dbt_gives_it(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("id,,c\n1,2,3\n")

    assert read_seed(path, ",", "1").header == ("id", "b", "c")


def test_a_file_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"

    assert messages(path, "a\n1,2\n") and not messages(path, "a\n1\n")
