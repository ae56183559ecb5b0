"""The text that remains for the analysis."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.parse import parse, tokens_of


def test_a_hint_and_the_last_semicolon_change_no_rows() -> None:
    tree = parse("select /*+ broadcast(t) */ a from t;")

    assert tree.sql("spark") == "SELECT a FROM t"


def test_text_that_is_no_sql_is_a_reason() -> None:
    with pytest.raises(Inapplicable) as caught:
        parse("select (")

    assert caught.value.reason.code == "PARSE_UNSUPPORTED"


def test_a_text_that_is_looked_at_again_is_not_read_again() -> None:
    text = "select a /* x */ as /* y */ b /* z */ from t"
    tokens = tokens_of(text)

    parse(text)
    parse(text)

    assert tokens_of(text) is tokens
    assert [comment for token in tokens for comment in token.comments] == []
