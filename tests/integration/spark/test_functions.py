"""Spark's own parser finds the same in what is printed of its functions' examples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from sqlglot import exp

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.relation import column, replaced
from livemart.plan.sql.parse import parse
from livemart.plan.sql.written import sql_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXAMPLE = re.compile(r"^\s*> (SELECT .+?);\s*$", re.MULTILINE | re.IGNORECASE)
# Not functions of the select list, or left to a full refresh by the parser.
_FEWEST_EXAMPLES = 700
_MOST_UNREAD = 60


@pytest.fixture
def examples(spark: SparkSession) -> list[str]:
    """Every SELECT among the examples of the functions that Spark lists."""
    names = [row[0] for row in spark.sql("show functions").collect()]
    texts = []
    for name in names:
        if not name.isidentifier():
            continue
        described = spark.sql(f"describe function extended `{name}`").collect()
        texts += _EXAMPLE.findall("\n".join(row[0] for row in described))
    return sorted(set(texts))


def test_what_is_printed_of_every_function_is_what_was_written(
    spark: SparkSession, examples: list[str]
) -> None:
    read = parsed_by(spark)
    unread, compared, different = [], 0, []
    for example in examples:
        try:
            tree = parse(example)
        except Inapplicable:
            unread.append(example)
            continue
        for item in tree.expressions:
            written = example_item(example, tree)
            if written is None:
                continue
            printed = sql_of(item)
            compared += 1
            if read(printed) != read(written):
                different.append((written, printed))

    assert different == []
    assert compared >= _FEWEST_EXAMPLES, compared
    assert len(unread) <= _MOST_UNREAD, unread


def test_every_column_of_a_call_can_be_replaced(spark: SparkSession) -> None:
    read = parsed_by(spark)
    names = [row[0] for row in spark.sql("show functions").collect()]
    different = []
    # IN is an operator: what looks like its call is a column with names.
    for name in (name for name in names if name.isidentifier() and name != "in"):
        for count in (1, 2, 3, 4):
            arguments = [f"a{place}" for place in range(count)]
            text = f"{name}({', '.join(arguments)})"
            expected = text.replace("(a", "(t.b").replace(" a", " t.b")
            try:
                call = parse(f"select {text} from t").expressions[0]
                renamed = replaced(call, lambda known: column(f"b{known.name[1:]}", "t"))
                expected_call = read(expected)
            except Exception:
                # No such call: what does not parse is not planned.
                continue
            if read(sql_of(renamed)) != expected_call and takes(spark, text):
                different.append((text, sql_of(renamed)))

    assert different == []


def takes(spark: SparkSession, call: str) -> bool:
    """Return False for a call with too many arguments, or with a word for its first one."""
    columns = ", ".join(f"'DAY' as a{place}" for place in range(4))
    try:
        spark.sql(f"select {call} from (select {columns})")
    except AnalysisException as error:
        refused = ("WRONG_NUM_ARGS", "INVALID_PARAMETER_VALUE.DATETIME_UNIT")
        return not (error.getCondition() or "").startswith(refused)
    except ParseException:
        return False
    return True


def parsed_by(spark: SparkSession) -> Any:
    """Return what gives an expression as Spark's parser reads it; names in lower case."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def read(text: str) -> str:
        return str(parser.parseExpression(text).toString()).lower()

    return read


def example_item(example: str, tree: exp.Expr) -> str | None:
    """Return the text of the only item of a select list without FROM; None for others."""
    only = tree.expressions[0] if len(tree.expressions) == 1 else None
    if only is None or isinstance(only, exp.Alias | exp.Star) or tree.args.get("from_"):
        return None
    return example.split(None, 1)[1]
