"""Every text of a page is escaped, and a name that a template lacks is an error."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from livemart.serve.page.templating import render, style_sheet


def test_a_text_is_only_text() -> None:
    values = {"status": 404, "is_waiting": False, "code": "X", "href": "/", "action": "Back"}

    page = render("message.html", title="<b>", detail="a & b", **values)

    assert "<h1>&lt;b&gt;</h1>" in page and "a &amp; b" in page


def test_a_missing_name_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        render("message.html")


def test_the_style_of_a_file_is_that_of_the_pages() -> None:
    # It ends no element that it is inside of.
    assert "--ground:" in style_sheet() and "</" not in style_sheet()
