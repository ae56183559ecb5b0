from __future__ import annotations

import shutil
from pathlib import Path

from livemart.project.dbt import Dbt

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"


def test_a_materialization_that_no_project_has_is_refused_with_its_line(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    (folder / "macros" / "own.sql").write_text(
        "{% materialization own, default %}{{ return({'relations': []}) }}{% endmaterialization %}"
    )
    for name, word in (("a", "tables"), ("b", "materialized_view"), ("c", "own"), ("d", "table")):
        (folder / "models" / f"{name}.sql").write_text(
            f"\n{{{{ config(materialized='{word}') }}}} select 1 as a"
        )

    (folder / "snapshots" / "s.sql").write_text(
        "{% snapshot s %}\n{{ config(strategy='checks', unique_key='id', check_cols='all') }}\n"
        "select 1 as id{% endsnapshot %}"
    )

    _, mistakes = Dbt(folder).parse()

    assert [(mistake.code, mistake.message) for mistake in mistakes] == [
        (
            "MATERIALIZATION_UNKNOWN",
            "models/a.sql:2: model a: found materialized tables, did you mean table?",
        ),
        (
            "MATERIALIZATION_UNKNOWN",
            "models/b.sql:2: model b: found materialized materialized_view",
        ),
        (
            "MATERIALIZATION_UNKNOWN",
            "snapshots/s.sql:2: snapshot s: found strategy checks, did you mean check?",
        ),
    ]
