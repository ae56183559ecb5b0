"""Lists the forms of an answer with rows: how links, `Accept` and pages name each, and its writer.

Used by pulls and by the page of a model, which links to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from starlette.requests import Request

from livemart.serve.http.forms import ARROW, CSV, JSON, PARQUET, choose_form
from livemart.serve.models.written_rows import ArrowRows, CsvRows, JsonRows, ParquetRows, RowWriter


class RowsFormat(StrEnum):
    """The form of an answer with rows, as a link names it."""

    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class RowForm:
    """A form: its media type, its name on a page, and the class that writes it."""

    media: str
    word: str
    writer: type[RowWriter]


# The first form that a caller likes best is taken.
FORMS: Mapping[RowsFormat, RowForm] = {
    RowsFormat.JSON: RowForm(JSON, "JSON", JsonRows),
    RowsFormat.CSV: RowForm(CSV, "CSV", CsvRows),
    RowsFormat.ARROW: RowForm(ARROW, "Arrow", ArrowRows),
    RowsFormat.PARQUET: RowForm(PARQUET, "Parquet", ParquetRows),
}
# For the OpenAPI document, which describes that of JSON in full.
CONTENTS: dict[str, Any] = {
    CSV: {"schema": {"type": "string"}},
    ARROW: {"schema": {"type": "string", "format": "binary"}},
    PARQUET: {"schema": {"type": "string", "format": "binary"}},
}


def choose_rows_format(request: Request, named: RowsFormat | None) -> RowsFormat:
    """Return the form that a link names, or else the one that `Accept` likes best.

    Raises:
        ProblemError: FORM_NOT_OFFERED.
    """
    if named is not None:
        return named
    by_media = {form.media: name for name, form in FORMS.items()}
    return by_media[choose_form(request, list(by_media))]
