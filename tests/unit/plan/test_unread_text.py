"""Different rows are not certainly a fault if a word of the SQL may cause them."""

from __future__ import annotations

import pytest

from livemart.plan.unread_text import unsure_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from a.b |> where x > 1 |> select js:a, first, user_id", ()),
        ("from a.b |> LIMIT 3", ("limit",)),
        ("select row_number() over (order by x) from a.b", ("over",)),
        ("select max_by (x, y) from a.b", ("max_by",)),
        ("from a.b |> extend current_date as day, Uuid() as u", ("current_date", "uuid")),
        ("from a.b |> where t < timestamp' now'", ("now",)),
        ("from a.b |> extend approx_percentile(x, 0.5)", ("approx_percentile",)),
        ("select * from a.b join a.c exact nearest 1 by distance x - y", ("nearest",)),
        ("select _metadata.file_path from a.b tablesample (3 rows)", ("_metadata", "tablesample")),
    ],
)
def test_words_that_may_bring_other_rows_are_found(text: str, words: tuple[str, ...]) -> None:
    assert unsure_words(text) == words
