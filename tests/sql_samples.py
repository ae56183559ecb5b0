"""The SQL samples of the documentation, as dbt compiles them, and the tables that they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import jinja2

ROOT = Path(__file__).resolve().parents[1]
_MACROS = ROOT / "livemart/project/clock_macros/macros"
_SAMPLE = re.compile(r"^```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)
_GENERIC_TEST = re.compile(r"\{% test (\w+)\((.*?)\) %\}(.*)\{% endtest %\}", re.DOTALL)
# The arguments of a generic test.
_ARGUMENTS = {"model": "'docs.products'", "column": "'quantity'", "maximum": "100"}

# Name and type of each column, by relation.
TYPES: Mapping[str, Mapping[str, str]] = {
    "livemart.clock": {"as_of": "timestamp"},
    "livemart.watermarks": {"complete_to": "timestamp"},
    "till.orders": {"shop_id": "string", "amount": "decimal(10,2)", "ordered_at": "timestamp"},
    "docs.stg_orders": {"shop_id": "string", "ordered_at": "timestamp"},
    "docs.stg_shop__orders": {
        "product_id": "string",
        "quantity": "int",
        "ordered_at": "timestamp",
    },
    "docs.int_order_panes_totaled": {
        "restaurant_id": "string",
        "order_count": "bigint",
        "sales_amount": "decimal(18,2)",
        "pane_started_at": "timestamp",
    },
    "docs.products": {"product_id": "string", "quantity": "int"},
}
TABLES = {relation: tuple(columns) for relation, columns in TYPES.items()}
CLOCKS = frozenset({"livemart.clock", "livemart.watermarks"})


def _samples() -> Iterator[tuple[str, str]]:
    """Yield `page:line` and SQL of each sample."""
    macros = "".join(path.read_text() for path in sorted(_MACROS.glob("*.sql")))
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    environment.globals.update(
        ref="docs.{}".format, source="{}.{}".format, var=lambda _, default: default
    )
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text()
        for sample in _SAMPLE.finditer(text):
            line = text.count("\n", 0, sample.start()) + 2
            compiled = environment.from_string(macros + _called(sample[1])).render()
            yield f"{page.relative_to(ROOT)}:{line}", compiled.strip()


def _called(sample: str) -> str:
    """Return a sample, of a generic test with a call of it behind."""
    if (test := _GENERIC_TEST.search(sample)) is None:
        return sample
    name, parameters, body = test.groups()
    given = ", ".join(_ARGUMENTS[it.strip()] for it in parameters.split(","))
    macro = f"{{% macro {name}({parameters}) %}}{body}{{% endmacro %}}"
    return f"{macro}{{{{ {name}({given}) }}}}"


SAMPLES: Mapping[str, str] = dict(_samples())
