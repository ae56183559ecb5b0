"""VARIANT is a separate type in Arrow, at any depth, and survives operations on rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.variant_utils import VariantUtils

from livemart.arrow.bags import WEIGHT, difference, is_member, net_rows, row_codes
from livemart.arrow.types import plain_schema, plain_table
from livemart.arrow.variants import VARIANT, as_structs, marked_schema, nothing_of, with_variants
from livemart.spark.types import spark_schema, type_text

NESTED = pa.schema(
    [
        ("v", VARIANT),
        ("l", pa.list_(pa.field("element", VARIANT))),
        ("s", pa.struct([("x", VARIANT), ("n", pa.int32())])),
        ("m", pa.map_(pa.string(), pa.list_(pa.field("element", VARIANT)))),
    ]
)


def variant(text: str | None) -> dict[str, bytes] | None:
    if text is None:
        return None
    value, metadata = VariantUtils.parse_json(text)
    return {"value": value, "metadata": metadata}


def variants(*texts: str | None) -> pa.Array:
    """Return variants as PySpark hands them over: its parts are NULL below a NULL variant."""
    marked = marked_schema(pa.schema([("v", VARIANT)])).field("v").type
    parts = [variant(text) or {} for text in texts]
    columns = [pa.array([part.get(it.name) for part in parts], pa.binary()) for it in marked]
    is_null = pa.array([text is None for text in texts])
    return pa.StructArray.from_arrays(columns, fields=list(marked), mask=is_null)


def nested(*texts: str | None) -> pa.Table:
    """Return a row for each text: it, a list of it and NULL, a struct, and a map of lists of it."""
    count = len(texts)
    values = variants(*texts)
    pairs = variants(*(it for text in texts for it in (text, None)))
    lists = pa.ListArray.from_arrays(range(0, 2 * count + 1, 2), pairs)
    maps = pa.MapArray.from_arrays(range(count + 1), pa.array(["k"] * count), lists)
    numbers = pa.array(range(count), pa.int32())
    structs = pa.StructArray.from_arrays([values, numbers], ["x", "n"])
    return pa.table({"v": values, "l": lists, "s": structs, "m": maps})


def test_what_pyspark_hands_over_becomes_variants_and_goes_back() -> None:
    handed = nested('{"a":1}', None, "null").slice(1)

    rows = plain_table(handed)

    assert rows.schema == NESTED == plain_schema(handed.schema)
    assert rows.column("v").to_pylist() == [None, variant("null")]
    assert rows.column("l").to_pylist() == [[None, None], [variant("null"), None]]
    assert rows.column("s").to_pylist() == [{"x": None, "n": 1}, {"x": variant("null"), "n": 2}]
    assert rows.column("m").to_pylist()[1] == [("k", [variant("null"), None])]
    back = as_structs(rows.take(pa.array([1, None, 0])))
    assert with_variants(back).to_pylist() == rows.take(pa.array([1, None, 0])).to_pylist()
    # Below a NULL nothing else is: Arrow would not cast it for PySpark, nor Parquet write it.
    assert back.column("v").combine_chunks().field("value").null_count == 0
    assert back.cast(marked_schema(NESTED)).num_rows == 3


def test_a_struct_of_two_binaries_is_no_variant() -> None:
    parts = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
    schema = pa.schema([("s", pa.struct(parts))])

    assert plain_schema(schema) == schema


def test_spark_and_arrow_spell_variants_alike() -> None:
    text = "struct<`v`:variant,`l`:array<variant>,`s`:struct<`x`:variant,`n`:int>,"
    text += "`m`:map<string,array<variant>>>"

    spelled = spark_schema(NESTED)

    assert type_text(spelled) == text
    assert plain_schema(to_arrow_schema(spelled)) == NESTED
    assert plain_schema(NESTED) == NESTED
    assert hash(VARIANT) == hash(plain_schema(marked_schema(NESTED)).field("v").type)
    assert nothing_of(NESTED).schema == NESTED


@pytest.mark.parametrize("name", NESTED.names)
def test_rows_with_variants_are_compared_by_value(name: str) -> None:
    old = plain_table(nested('{"a":1,"b":2}', "1", "null", None).select([name]))
    new = plain_table(nested('{"b":2,"a":1}', "1.0", None, "null").select([name]))
    if name == "s":
        # The number beside it would tell the rows apart.
        (old, new) = (
            pa.table({name: pa.StructArray.from_arrays([it["s"].combine_chunks().field(0)], ["x"])})
            for it in (old, new)
        )

    codes = row_codes(pa.concat_tables([old, new]).combine_chunks().columns, 8)
    changed = difference(new, old)
    netted = net_rows(pa.concat_tables([old, new]), pa.array([-1] * 4 + [1] * 4))

    assert [int(code) for code in codes[4:] == codes[:4]] == [1, 0, 0, 0]
    assert codes[2] == codes[7] and codes[3] == codes[6]
    assert changed.num_rows == netted.num_rows == 2
    assert sorted(netted.column(WEIGHT).to_pylist()) == [-1, 1]
    assert is_member(old.columns, new.columns).tolist() == [True, False, True, True]
