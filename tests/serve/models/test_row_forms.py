"""A link names the form of its rows; without one, `Accept` does."""

from __future__ import annotations

import pytest

from livemart.serve.http.problems import ProblemError
from livemart.serve.models.row_forms import CONTENTS, FORMS, RowsFormat, choose_rows_format
from tests.serve.http.requests import request_of


def test_each_form_is_chosen_by_its_name_and_by_its_media_type() -> None:
    for name, form in FORMS.items():
        accepts = request_of(headers={"Accept": f"text/html, {form.media};q=0.5"})

        assert choose_rows_format(accepts, None) is name
        assert all(choose_rows_format(accepts, named) is named for named in RowsFormat)
    assert choose_rows_format(request_of(), None) is RowsFormat.JSON
    assert {form.media for form in FORMS.values()} == {"application/json", *CONTENTS}


def test_a_form_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ProblemError, match="offered here: application/json, text/csv, "):
        choose_rows_format(request_of(headers={"Accept": "text/html"}), None)
