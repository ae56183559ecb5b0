"""Fills the templates of the pages.

Used by all pages, and by files of HTML. Every text is escaped; an unknown name is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from livemart.serve.page.text import DASH

_HERE = Path(__file__).parent
STATIC = _HERE / "static"

_static = FileSystemLoader(STATIC)
_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
# Unlike the filter `urlencode`, which leaves slashes.
_templates.filters["segment"] = lambda text: quote(text, safe="")
_templates.globals["dash"] = DASH


def render(name: str, **values: Any) -> str:
    """Return a page.

    Args:
        name: of its template.
        values: by the names in the template.
    """
    return _templates.get_template(name).render(**values)


def style_sheet() -> Markup:
    """Return the style of all pages, for a file that has it inside."""
    return Markup(_static.get_source(_templates, "page.css")[0])
