"""Records of a bulk load, parsed once by Spark's workers and kept as Parquet until they land."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from livemart.land.files.folder import Span, split_file
from livemart.land.records.judge import Group
from livemart.land.records.parse import FORMAT_READERS
from livemart.land.records.worker import SPANS, ParseSpans
from livemart.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPAN_BYTES = 24 << 20


def stage(
    spark: SparkSession, folder: Path, group: Group, files: Iterable[tuple[str, Path]]
) -> DataFrame:
    """Parse files in Spark's workers and return the judged records, kept as Parquet in `folder`.

    Args:
        spark: the session; its workers can import this package.
        folder: made anew; the caller removes it.
        group: columns and rules.
        files: name in `_origin` and place of each file.
    """
    shutil.rmtree(folder, ignore_errors=True)
    spans = [
        (name, str(path), span.start, span.end, span.first_line)
        for name, path in files
        for span in _spans(group, path)
    ]
    tasks = spark.createDataFrame(spans, SPANS).repartition(max(1, len(spans)))
    parsed = tasks.mapInArrow(ParseSpans(group), spark_schema(group.judged))
    parsed.write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


def _spans(group: Group, path: Path) -> list[Span]:
    """Return the parts of a file that can be parsed by themselves."""
    is_whole = FORMAT_READERS[group.format].is_whole(path)
    return [Span()] if is_whole else split_file(path, _SPAN_BYTES)
