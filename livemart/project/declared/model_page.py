"""Reads how the page of a model looks, `config.meta.livemart.page`.

Used when the manifest is read, by publication, and by the pages. Names of columns are checked
where a contract declares all columns; a page passes over unknown ones and reports them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from livemart.errors import ConfigError, nearest
from livemart.project.yaml_places import Mistakes, Where, place_of

PAGE_CHARTS = ("lines", "bars", "tiles", "none")
MONEY, PERCENT, COMPACT = "money", "percent", "compact"
_FORMATS = (MONEY, PERCENT, COMPACT)
_MOST_DIGITS = 12
_LONGEST_TITLE = 200
# A picture, and a cell for each tile, have no room for more.
_LISTS = {"numbers": 6, "by": 4, "tiles": 12, "order": 8}
_COLUMNS = "write one column, or a list of at most {most}: [a, b]"
_CURRENCY_CODE = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class PageSpec:
    """The look of a model's page; the page's own rules choose for a field that is empty."""

    title: str = ""
    chart: str = ""
    """One of `PAGE_CHARTS`."""
    x: str = ""
    """The column of times, or of the names of bars."""
    numbers: tuple[str, ...] = ()
    """Columns, each with a picture."""
    by: tuple[str, ...] = ()
    """Columns that name a line."""
    tiles: tuple[str, ...] = ()
    """Columns to show of a single row."""
    order: tuple[str, ...] = ()
    """Columns that order the rows; they may end in `.asc` or `.desc`."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """By column: `money`, `percent`, `compact`, or the number of digits after the point."""
    currency: str = ""
    """The column with the code of each row's amounts, or one code for all."""

    def named(self, columns: Collection[str] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the key and the name of each column that is named.

        Args:
            columns: in lower case; one of them is never taken for a direction or a currency.
        """
        if self.x:
            yield ("x",), self.x
        for key in ("numbers", "by", "tiles"):
            yield from (((key,), name) for name in getattr(self, key))
        yield from ((("order",), _directed(item, columns)[0]) for item in self.order)
        yield from ((("formats", name), name) for name in self.formats)
        is_code = _CURRENCY_CODE.fullmatch(self.currency) and self.currency.lower() not in columns
        if self.currency and not is_code:
            yield ("currency",), self.currency

    def fitted(self, columns: Iterable[str]) -> tuple[PageSpec, tuple[str, ...]]:
        """Return the page with names as these columns are spelled, and the names of no column.

        In the result, `order` has a direction at the end of each column.
        """
        spelled = {name.lower(): name for name in columns}
        named = list(self.named(spelled))
        unknown = dict.fromkeys(name for _, name in named if name.lower() not in spelled)

        def spell(key: str) -> tuple[str, ...]:
            names = (name for name in getattr(self, key) if name not in unknown)
            return tuple(dict.fromkeys(spelled[name.lower()] for name in names))

        directed = (_directed(item, spelled) for item in reversed(self.order))
        ways = {spelled[it.lower()]: way for it, way in directed if it not in unknown}
        currency = "" if self.currency in unknown else self.currency
        fitted = PageSpec(
            self.title,
            self.chart,
            spelled.get(self.x.lower(), ""),
            spell("numbers"),
            spell("by"),
            spell("tiles"),
            tuple(f"{name}.{way}" for name, way in reversed(ways.items())),
            {spelled[it.lower()]: form for it, form in self.formats.items() if it not in unknown},
            spelled.get(currency.lower(), currency),
        )
        return fitted, tuple(unknown)


# The page of a model whose project says nothing of it.
NO_PAGE = PageSpec()


def parse_page(
    meta: object, where: Where | str, columns: Sequence[str] | None = None
) -> tuple[PageSpec, list[ConfigError]]:
    """Return how the page of a model looks, and every mistake.

    Args:
        meta: value of `config.meta.livemart.page`, or None.
        where: of the model.
        columns: all columns of the model; None if they are not known before it runs.

    Codes: PAGE_INVALID.
    """
    if meta is None:
        return NO_PAGE, []
    reading = _Reading(place_of(where))
    page = reading.read(meta)
    lowered = None if columns is None else {name.lower() for name in columns}
    for path, name in page.named(lowered or ()):
        if lowered is not None and name.lower() not in lowered:
            finding = f"found column {name}{nearest(name, columns or ())}"
            reading.refuse(path, finding, f"the columns are {', '.join(columns or ())}")
    return page, reading.mistakes.errors


class _Reading:
    """Reads the keys of a page, and collects their mistakes."""

    def __init__(self, where: Where) -> None:
        self.mistakes = Mistakes(where)

    def refuse(self, path: tuple[str, ...], finding: str, hint: str) -> None:
        """Note a mistake at a key of the page, and the right form."""
        self.mistakes.refuse("PAGE_INVALID", ("meta", "page", *path), finding, hint)

    def read(self, meta: object) -> PageSpec:
        """Return the page, without the keys that are wrong."""
        if not isinstance(meta, Mapping):
            self.refuse((), f"found {meta!r}", "write `page: {title: Sales by hour}`")
            return NO_PAGE
        keys = [field.name for field in fields(PageSpec)]
        for key in map(str, meta):
            if key not in keys:
                hint = f"the keys of a page are {', '.join(f'`{name}`' for name in keys)}"
                self.refuse((key,), f"found key {key}{nearest(key, keys)}", hint)
        page = PageSpec(
            self._text(meta, "title", f"write a text of at most {_LONGEST_TITLE} characters"),
            self._chart(meta),
            self._text(meta, "x", "write the name of a column"),
            self._names(meta, "numbers"),
            self._names(meta, "by"),
            self._names(meta, "tiles"),
            self._names(meta, "order"),
            self._formats(meta),
            self._text(meta, "currency", "write the name of a column, or a code such as EUR"),
        )
        amounts = [name for name, form in page.formats.items() if form == MONEY]
        if "currency" not in meta:
            for name in amounts:
                hint = "add `currency:` with the column of the codes, or with a code such as EUR"
                self.refuse(("formats", name), f"found {MONEY} without a currency", hint)
        elif page.currency and not amounts and "formats" not in meta:
            hint = f"say which columns are amounts: `formats: {{sales_amount: {MONEY}}}`"
            self.refuse(("currency",), f"found {page.currency} without an amount", hint)
        return page

    def _text(self, meta: Mapping[Any, Any], key: str, hint: str) -> str:
        text = meta.get(key, "")
        if key in meta and not (isinstance(text, str) and 0 < len(text.strip()) <= _LONGEST_TITLE):
            self.refuse((key,), f"found {text!r}"[:_LONGEST_TITLE], hint)
            return ""
        return str(text).strip()

    def _chart(self, meta: Mapping[Any, Any]) -> str:
        chart = meta.get("chart", "")
        if "chart" in meta and chart not in PAGE_CHARTS:
            finding = f"found {chart}{nearest(str(chart), PAGE_CHARTS)}"
            self.refuse(("chart",), finding, f"write one of {', '.join(PAGE_CHARTS)}")
            return ""
        return str(chart)

    def _names(self, meta: Mapping[Any, Any], key: str) -> tuple[str, ...]:
        names, most = meta.get(key, ()), _LISTS[key]
        if isinstance(names, str):
            names = [names]
        is_list = isinstance(names, list | tuple) and len(names) <= most
        if not is_list or not all(isinstance(name, str) and name.strip() for name in names):
            self.refuse((key,), f"found {names!r}", _COLUMNS.format(most=most))
            return ()
        if key in meta and not names:
            self.refuse((key,), "found no column", _COLUMNS.format(most=most))
        if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            self.refuse((key,), f"found {repeated[0]} more than once", "name it once")
        return tuple(dict.fromkeys(names))

    def _formats(self, meta: Mapping[Any, Any]) -> dict[str, str]:
        formats = meta.get("formats", {})
        if not isinstance(formats, Mapping):
            hint = f"write columns with their format: {{share: {PERCENT}, sales: 2}}"
            self.refuse(("formats",), f"found {formats!r}", hint)
            return {}
        right = {}
        for name, form in formats.items():
            is_digits = type(form) is int and 0 <= form <= _MOST_DIGITS
            if is_digits or form in _FORMATS:
                right[str(name)] = str(form)
                continue
            self.refuse(
                ("formats", str(name)),
                f"found {form}{nearest(str(form), _FORMATS)}",
                f"write one of {', '.join(_FORMATS)}, or how many digits are after the point, "
                f"0 to {_MOST_DIGITS}",
            )
        return right


def _directed(item: str, columns: Collection[str]) -> tuple[str, str]:
    """Return the column of an item of an order, and its direction; a column may end like one."""
    name, _, way = item.rpartition(".")
    if item.lower() in columns or way not in ("asc", "desc"):
        return item, "asc"
    return name, way
