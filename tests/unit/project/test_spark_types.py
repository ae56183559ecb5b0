from __future__ import annotations

import pytest

from livemart.project.spark_types import TypeSyntaxError, parse_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STRING", "string"),
        ("Long", "bigint"),
        ("numeric(12,3)", "decimal(12,3)"),
        ("decimal", "decimal(10,0)"),
        ("array<array<int>>", "array<array<int>>"),
        ("map<string, decimal(4,1)>", "map<string,decimal(4,1)>"),
        ("struct<a: int NOT NULL COMMENT 'x, y', `b c`: date>", "struct<a:int,b c:date>"),
    ],
)
def test_spark_ddl_is_understood(text: str, expected: str) -> None:
    actual = str(parse_type(text))

    assert actual == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("strng", "strng"),
        ("array<int", ""),
        ("decimal(39,2)", "decimal(39,2)"),
        ("decimal(5,6)", "decimal(5,6)"),
        ("struct<a:int,A:int>", "A"),
        ("map<int,string>", "int"),
        ("int int", "int"),
        ("", ""),
    ],
)
def test_other_texts_are_refused_with_the_word_found(text: str, word: str) -> None:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_type(text)

    assert caught.value.word == word
