"""A column that no table takes is refused before the table is made, with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from livemart.errors import ConfigErrors
from livemart.plan import table_columns
from livemart.plan.sql.parse import parse
from livemart.plan.table_columns import require_table_columns
from livemart.project.graph import Column, Project
from tests.models import make_model

UNIQUE_ID = "model.shop.totals"


def project(folder: Path, code: str, materialized: str = "table") -> Project:
    model = make_model(UNIQUE_ID, compiled_code=code, materialized=materialized)
    (folder / model.file).parent.mkdir(exist_ok=True)
    (folder / model.file).write_text(code)
    return Project("shop", str(folder), "shop", {}, {UNIQUE_ID: model}, {}, {})


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("select a,\n  b as `net total` from t", "INVALID:2: model totals: found `net total`"),
        ("select a,\n  count(*)\nfrom t group by 1", "INVALID:2: model totals: found `COUNT(*)`"),
        ("select a + 1 from t union all select 1 as a", "INVALID:1: model totals: found `a + 1`"),
        (
            "select sum(a) over (partition by b) from t",
            "INVALID:1: model totals: found `SUM(a) OVER (PARTITION BY b)`",
        ),
        ("with q as (select 1 as x)\nselect x.id, y.id from q", "TWICE:2: model totals: found id"),
        ("(select a, b as A from t)", "TWICE:1: model totals: found A beside a"),
    ],
)
def test_it_is_refused(tmp_path: Path, code: str, finding: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        require_table_columns(project(tmp_path, code))

    (mistake,) = caught.value.errors
    kind, line, words = finding.split(":", 2)
    assert mistake.code == f"MODEL_COLUMN_{kind}"
    assert mistake.message.startswith(f"models/totals.sql:{line}:{words}")


@pytest.mark.parametrize(
    "code",
    [
        "select *, a from t",
        "select cast(a as int), explode(b), 1, 'x', upper(c) from t",
        "select a as b, b as c, `größe` from (select a, a, count(*) from t)",
        "select lag(",
    ],
)
def test_what_may_have_a_good_name_is_taken(tmp_path: Path, code: str) -> None:
    require_table_columns(project(tmp_path, code))


@pytest.mark.parametrize(
    ("code", "breaches"),
    [
        ("select a, 'x' as b from t", "c is missing; b is not in it"),
        ("select A, C from t union all select 1, 2", None),
        ("select a, t.* from t", None),
        ("select a, count(*) from t group by 1", None),
    ],
)
def test_a_model_that_selects_other_columns_than_its_contract_is_refused(
    tmp_path: Path, code: str, breaches: str | None
) -> None:
    plain = project(tmp_path, code, "view")
    columns = (Column("a", "int"), Column("`c`", "string"))
    model = replace(plain.models[UNIQUE_ID], is_contracted=True, columns=columns)
    contracted = replace(plain, models={UNIQUE_ID: model})

    if breaches is None:
        require_table_columns(contracted)
        return
    with pytest.raises(ConfigErrors) as caught:
        require_table_columns(contracted)
    assert [error.message for error in caught.value.errors] == [
        f"models/totals.sql: its enforced contract is violated: {breaches}"
    ]


def test_a_view_may_have_any_name(tmp_path: Path) -> None:
    require_table_columns(project(tmp_path, "select count(*) from t", "view"))


def test_a_text_is_parsed_once_for_all_questions_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_columns.selected_items.cache_clear()
    counted = Mock(wraps=parse)
    monkeypatch.setattr(table_columns, "parse", counted)
    before = project(tmp_path, "select a as known_before from t")
    columns = (Column("known_before", "int"),)
    model = replace(before.models[UNIQUE_ID], is_contracted=True, columns=columns)

    require_table_columns(replace(before, models={UNIQUE_ID: model}))
    require_table_columns(before)
    require_table_columns(project(tmp_path, "select a as edited from t"))

    parsed = [asked.args[0] for asked in counted.call_args_list]
    assert parsed == ["select a as known_before from t", "select a as edited from t"]
