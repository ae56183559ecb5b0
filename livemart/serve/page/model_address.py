"""Holds the address of a model's page: its questions, and the addresses that it leads to.

Used by a model's page, whose every choice is in its address. Its links and its form need no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from livemart.project.declared.model_page import NO_PAGE, PageSpec
from livemart.serve.page.charts import ChartWish
from livemart.store.served import ServedModel

# Parameters of `/v1/models/{name}` that decide which rows there are, and their order; then those
# that do not.
OF_ROWS = ("key", "from", "to", "time_column", "order")
_OF_A_PAGE = ("select", "limit", "after")
# Those that only the page has: a column of this name is out of reach of a condition here.
WHERE, IS, VALUE = "page.where", "page.is", "page.value"
CHART, X, NUMBER, BY = "page.chart", "page.x", "page.number", "page.by"
_OF_THE_FORM = (WHERE, IS, VALUE)
_OF_THE_CHART = (CHART, X, NUMBER, BY)
OPERATORS = {
    "eq": "=",
    "neq": "\N{NOT EQUAL TO}",
    "gt": ">",
    "gte": "\N{GREATER-THAN OR EQUAL TO}",
    "lt": "<",
    "lte": "\N{LESS-THAN OR EQUAL TO}",
    "in": "one of",
    "is.null": "is empty",
    "is.not_null": "is not empty",
}

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """An address of a model's page: its parameters, without those that it does not know.

    `page`: how the project wants it to look, in the spelling of the model's columns. The address
    comes before it.
    """

    model: ServedModel
    asked: tuple[Pair, ...]
    page: PageSpec = NO_PAGE

    @classmethod
    def of(
        cls, model: ServedModel, parameters: Sequence[Pair], page: PageSpec = NO_PAGE
    ) -> ModelAddress:
        """Return the address with these parameters; empty ones are those of an empty field."""
        names = {*OF_ROWS, *_OF_A_PAGE, *_OF_THE_FORM, *_OF_THE_CHART, *model.kinds}
        asked = tuple((name, text) for name, text in parameters if name in names and text)
        return cls(model, asked, page)

    def first(self, name: str) -> str | None:
        """Return the value of a parameter; None without one."""
        return next((text for other, text in self.asked if other == name), None)

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter."""
        return [text for other, text in self.asked if other == name]

    @property
    def conditions(self) -> list[Pair]:
        """The columns with their conditions, in the API's form."""
        of_page = {*OF_ROWS, *_OF_A_PAGE, *_OF_THE_FORM, *_OF_THE_CHART}
        return [(name, text) for name, text in self.asked if name not in of_page]

    @property
    def chart_wish(self) -> ChartWish:
        """The chart that is asked for."""
        return ChartWish(
            self.first(CHART) or "",
            self.first(X) or "",
            tuple(self.all(NUMBER)),
            tuple(self.all(BY)),
        )

    @property
    def order(self) -> str | None:
        """The order of the rows: that of the address, else that of the project; None: the key."""
        if (order := self.first("order")) is not None:
            return order
        items = [it for it in self.page.order if self.model.kinds[it.rpartition(".")[0]] != "json"]
        return ",".join(map(quoted_item, items)) or None

    @property
    def of_rows(self) -> list[Pair]:
        """The parameters that decide which rows there are, and their order."""
        conditions = self.conditions
        pairs = [pair for pair in self.asked if pair[0] in OF_ROWS or pair in conditions]
        return pairs if self.first("order") is not None else [*pairs, *self._project_order()]

    def _project_order(self) -> list[Pair]:
        return [("order", order)] if (order := self.order) is not None else []

    @property
    def path(self) -> str:
        """The page without parameters."""
        return f"/models/{quote(self.model.name, safe='')}"

    @property
    def here(self) -> str:
        """This address."""
        return self._write(self.asked)

    @property
    def first_page(self) -> str:
        """The address of the first page of these rows."""
        return self._write(self._without("after"))

    def next_page(self, cursor: str) -> str:
        """Return the address of the rows behind these."""
        return self._write([*self._without("after"), ("after", cursor)])

    def filtered(self) -> str | None:
        """Return the address with the condition of the form; None if the form was not sent."""
        if not any(self.first(name) for name in _OF_THE_FORM):
            return None
        asked = self._without("after", *_OF_THE_FORM)
        column, operator = self.first(WHERE), self.first(IS) or "eq"
        if column is not None and column in self.model.kinds and operator in OPERATORS:
            text = self.first(VALUE) or ""
            if operator == "in":
                text = text if text.startswith("(") else f"({text})"
            asked.append((column, operator if operator.startswith("is.") else f"{operator}.{text}"))
        return self._write(asked)

    def without(self, pair: Pair) -> str:
        """Return the address without a condition."""
        left = self._without("after")
        left.remove(pair)
        return self._write(left)

    def sorted_by(self, column: str) -> tuple[str, str]:
        """Return how rows are sorted by a column now, and the address of the next way.

        The ways are `none`, `ascending`, `descending`, and `none` again.
        """
        quoted = quoted_item(column)
        asked = self._without("after", "order")
        order, is_asked = self.order, self.first("order") is not None
        if order in (quoted, f"{quoted}.asc", quoted_item(f"{column}.asc")):
            return "ascending", self._write([*asked, ("order", f"{quoted}.desc")])
        if order in (f"{quoted}.desc", quoted_item(f"{column}.desc")):
            # The project's own order is no step back from itself.
            up = [] if is_asked else [("order", f"{quoted}.asc")]
            return "descending", self._write([*asked, *up])
        return "none", self._write([*asked, ("order", f"{quoted}.asc")])

    def showing(self, columns: Sequence[str]) -> str:
        """Return the address with these columns shown."""
        asked = self._without("select")
        if list(columns) != list(self.model.kinds):
            asked.append(("select", ",".join(map(quoted_item, columns))))
        return self._write(asked)

    def hidden(self, *names: str) -> list[Pair]:
        """Return the parameters that a form must send along, but for these."""
        return self._without("after", *names)

    def download(self, form: str, most: int) -> str:
        """Return the address of these rows at the API, from the first one on."""
        asked = self._without("limit", "after", *_OF_THE_FORM, *_OF_THE_CHART)
        if self.first("order") is None:
            asked += self._project_order()
        path = f"/v1/models/{quote(self.model.name, safe='')}"
        return f"{path}?{_query([*asked, ('limit', str(most)), ('format', form)])}"

    def _without(self, *names: str) -> list[Pair]:
        return [pair for pair in self.asked if pair[0] not in names]

    def _write(self, asked: Sequence[Pair]) -> str:
        return f"{self.path}?{_query(asked)}" if asked else self.path


def quoted_item(name: str) -> str:
    """Return a name as an item of a list of the API: in quotes if it has signs of lists."""
    if any(sign in name for sign in '",()\\'):
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return name


def _query(asked: Sequence[Pair]) -> str:
    # Signs that addresses may hold and the API's parameters are full of stay legible.
    return urlencode(list(asked), safe=".,():", quote_via=quote)
