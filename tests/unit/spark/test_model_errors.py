"""Authors of models see their own file, line and SQL, and nothing of livemart's."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.errors import RefreshError
from livemart.project.graph import Project, SourceTable, StreamSpec
from livemart.spark.model_errors import how_to_fill, message_of, missing_sources, model_failed
from tests.models import make_model

MODEL = make_model("model.m.totals", compiled_code="select\n  a,\n  cast(b as int) as n\nfrom m.t")
SPLICED = "select * from (select * from delta.`/data/m/t` version as of 3) as __livemart_0__"


class SparkError(Exception):
    """An error as PySpark gives it: with its place in the statement that failed."""

    def __init__(self, text: str, start: int = 0, fragment: str = "", view: str = "") -> None:
        super().__init__(f"{text}\n\n== SQL (line 1, position 9) ==\n{SPLICED}\n^^^\n")
        self._text = text
        self._context = SimpleNamespace(
            objectType=lambda: "VIEW" if view else "",
            objectName=lambda: view,
            startIndex=lambda: start,
            fragment=lambda: fragment,
        )

    def getMessage(self) -> str:
        return self._text

    def getQueryContext(self) -> list[Any]:
        return [self._context]


def told(error: Exception, written: Exception | None) -> RefreshError:
    """Return what is said of an error, given that of the SQL as it was written."""

    def sql(text: str) -> Any:
        assert text == MODEL.compiled_code
        if written is not None:
            raise written
        save = SimpleNamespace(save=lambda: None)
        return SimpleNamespace(
            write=SimpleNamespace(format=lambda _: SimpleNamespace(mode=lambda _: save))
        )

    return model_failed(lambda model: cast(Any, SimpleNamespace(sql=sql)), MODEL, error)


def test_a_path_of_a_text_has_advice_where_spark_has_no_words() -> None:
    error = SparkError(
        "[INTERNAL_ERROR] Cannot find main error class 'COLUMN_IS_NOT_VARIANT_TYPE' SQLSTATE: XX000"
    )

    assert message_of(error) == (
        "[COLUMN_IS_NOT_VARIANT_TYPE] Spark reads `column:path` of a VARIANT alone; "
        "in a string get_json_object(column, '$.path') finds the value"
    )


def test_the_line_is_that_of_the_sql_as_it_was_written() -> None:
    assert MODEL.compiled_code is not None
    fragment = "cast(b as int)"
    written = SparkError(
        "[CAST_INVALID_INPUT] 'x' is no INT. SQLSTATE: 22018",
        MODEL.compiled_code.index(fragment),
        fragment,
    )

    error = told(SparkError("[CAST_INVALID_INPUT] 'x' is no INT.", 9, SPLICED), written)

    assert error.message == (
        "models/totals.sql: line 3 of its compiled SQL: `cast(b as int)`: "
        "[CAST_INVALID_INPUT] 'x' is no INT."
    )


def test_an_error_in_a_view_names_the_view() -> None:
    written = SparkError("[DIVIDE_BY_ZERO] by zero.", 7, "a / z", view="spark_catalog.m.ratios")

    error = told(ValueError(), written)

    assert "in view spark_catalog.m.ratios: `a / z`: [DIVIDE_BY_ZERO] by zero." in error.message


@pytest.mark.parametrize(
    "written",
    [
        ValueError(
            "[PARSE_SYNTAX_ERROR] near 'form'. SQLSTATE: 42601 (line 2, pos 2)\n\n== SQL =="
        ),
        ValueError("[UNRESOLVED_COLUMN] `c`. SQLSTATE: 42703; line 2 pos 2;\n'Project ['c]\n+- x"),
    ],
)
def test_a_line_that_only_the_text_names_is_shown_too(written: Exception) -> None:
    message = told(ValueError(), written).message

    assert message.startswith("models/totals.sql: line 2 of its compiled SQL: `a,`: [")
    assert "Project" not in message
    assert "== SQL" not in message


@pytest.mark.parametrize(
    "text",
    [
        f"[INTERNAL] no such column in {SPLICED}",
        "[UNRESOLVED_COLUMN] `x`, did you mean `q`.`a`",
        "no view __m__totals_7_region",
        "column _old_count is missing",
    ],
)
def test_nothing_of_ours_is_shown_where_the_sql_works_by_itself(text: str) -> None:
    message = told(ValueError(text), None).message

    assert message.startswith("models/totals.sql: ")
    assert "the SQL fails in this batch, but not when it runs alone" in message
    assert not any(piece in message for piece in ("__", "version as of", "`q`", "_old_count"))


def test_what_the_jvm_says_unread_is_read() -> None:
    jvm = ValueError(
        "An error occurred while calling o1.getResult.\n: org.apache.spark.SparkException: thrown\n"
        "\tat org.apache\nCaused by: java.lang.X: [SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one.\n"
    )

    assert told(ValueError(), jvm).message.endswith(
        "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one."
    )


def test_an_error_that_pyspark_cannot_ask_is_told_by_its_text() -> None:
    class DeltaError(Exception):
        """As PySpark gives an error of Delta's that has no condition."""

        def getMessage(self) -> str:
            raise ValueError("An error occurred while calling o1.getMessage")

        def getQueryContext(self) -> list[Any]:
            raise ValueError("An error occurred while calling o1.getQueryContext")

    said = DeltaError("Found duplicate column(s): amount\n\nJVM stacktrace:\na.b.DeltaX: c\n\tat d")

    assert told(said, None).message == "models/totals.sql: Found duplicate column(s): amount"


def test_an_error_without_words_is_named_with_what_caused_it() -> None:
    silent = ValueError(
        "\n\nJVM stacktrace:\njava.lang.NullPointerException\n\tat a.B.c(B.scala:1)\n"
        "Caused by: java.io.IOException: no such block\n\tat d.E\n\t... 3 more\n"
    )

    assert told(silent, None).message == ("models/totals.sql: java.io.IOException: no such block")


def test_a_table_that_is_not_found_is_a_source_that_nothing_lands() -> None:
    def source(name: str, stream: StreamSpec | None = None) -> SourceTable:
        unique_id = f"source.m.shop.{name}"
        return SourceTable(unique_id, "shop", name, "Raw", name, (), None, None, stream, "s.yml")

    sources = [source("orders"), source("shops"), source("landed", StreamSpec())]
    project = Project("m", ".", "m", {it.unique_id: it for it in sources}, {}, {}, {})
    not_found = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `{}` cannot be found. Verify the ..."
    messages = [
        "models/a.sql: line 1: " + not_found.format("RAW`.`Orders"),
        not_found.format("raw`.`landed") + not_found.format("other`.`shops"),
        "models/b.sql: [UNRESOLVED_COLUMN] `raw`.`shops`",
    ]

    assert missing_sources(project, messages) == [sources[0]]
    assert missing_sources(project, []) == []


def test_a_source_without_a_table_is_landed_or_filled_by_a_seed() -> None:
    landed = SourceTable("source.m.a.b", "a", "b", "raw", "b", (), None, None, None, "s.yml")
    disabled = replace(landed, identifier="c", disabled_seed="seeds/c.csv")
    elsewhere = replace(landed, identifier="D")
    seed = replace(make_model("seed.m.d", schema="mart"), identifier="d", materialized="seed")
    project = Project("m", ".", "m", {}, {seed.unique_id: seed}, {}, {})

    steps = [how_to_fill(project, [source]) for source in (landed, disabled, elsewhere)]

    assert steps[0].startswith("nothing lands raw.b (s.yml): `livemart init --from-dbt` shows")
    assert "disabled: enable seeds/c.csv" in steps[1]
    assert "in another schema: fill raw.d from mart.d" in steps[2]
    assert how_to_fill(project, [landed, disabled, elsewhere]) == "; ".join(steps)
