"""A column that no table takes is refused before the table is made, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigErrors
from livemart.plan.table_columns import require_table_columns
from livemart.project.graph import Project
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


def test_a_view_may_have_any_name(tmp_path: Path) -> None:
    require_table_columns(project(tmp_path, "select count(*) from t", "view"))
