"""The rules of a sound reading, each broken: the golden files or random changes notice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pytest
from sqlglot import exp

from livemart.plan import block_part, cut, cut_blocks
from livemart.plan.reading import scopes
from livemart.plan.relations import relation
from livemart.plan.relations.gate import Aggregate, Gate, GroupsOfSets, WindowGate
from livemart.plan.relations.key_query import KeyQuery
from livemart.plan.relations.relation import Expr
from livemart.plan.sql import written
from tests.unit.plan.golden import actual, cases
from tests.unit.plan.test_random_queries import (
    check_clock_seed,
    check_distinct_seed,
    check_seed,
    check_sets_seed,
)


def is_noticed(title: str) -> bool:
    """Return True if a golden case has another plan now."""
    (case,) = [case for case in cases() if case.title == title]
    return actual(case) != case.expected


def test_an_elastic_key_that_passes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    firm = cached_property(lambda gate: list(gate.keys))
    firm.__set_name__(Gate, "_firm_keys")
    monkeypatch.setattr(Gate, "_firm_keys", firm)

    assert is_noticed("a session under an alias of a subquery confines nothing")


def test_elastic_keys_that_are_known_by_their_spelling_alone_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spelled_out(self: relation.Relation, expr: Expr) -> bool:
        return "session_window" in written.sql_of(expr)

    for kind in (relation.Relation, relation.Renaming):
        monkeypatch.setattr(kind, "is_elastic", spelled_out)

    assert is_noticed("a session under an alias of a subquery confines nothing")


def test_the_order_of_a_frame_without_its_margins_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def affected(self: Gate, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        is_frame = isinstance(self, WindowGate)
        self._require([expr for expr in want if not (is_frame and self._passes_time(expr))])
        return self.source.affected(want, has_time=has_time)

    monkeypatch.setattr(Gate, "affected", affected)

    assert is_noticed("a frame below a join by time alone")
    with pytest.raises(AssertionError, match="seed 95"):
        check_seed(95)


def test_expressions_that_are_printed_anew_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = written.WrittenParser(dialect="spark")
    text = "select to_char(x, 'yyyy') from t"
    tokens = tree.dialect.tokenize(text)
    (parsed,) = tree.parse(tokens, text)
    assert isinstance(parsed, exp.Select)

    # Without what was cut from the text there is nothing but the parser's own reading.
    assert written.sql_of(parsed.selects[0]) != "to_char(x, 'yyyy')"
    written.cut_texts(parsed, tokens, text)
    assert written.sql_of(parsed.selects[0]) == "to_char(x, 'yyyy')"


def test_a_comparison_with_the_clock_that_moves_no_row_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scopes, "comparisons_in", lambda expr: [])

    with pytest.raises(AssertionError, match="seed"):
        for seed in range(10):
            check_clock_seed(seed)


def test_an_order_whose_names_are_looked_up_without_the_outputs_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_column(expr: Expr, _: object) -> bool:
        return isinstance(expr, exp.Column)

    monkeypatch.setattr(cut, "_reads_outputs", is_column)

    assert is_noticed("an order by a column and an output of the same expression")


def test_grouping_sets_that_are_not_told_apart_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def __init__(self: GroupsOfSets, *args: Any) -> None:
        init(self, *args)
        self.group_keys = self.group_keys[:-1]

    init = GroupsOfSets.__init__
    monkeypatch.setattr(GroupsOfSets, "__init__", __init__)

    assert is_noticed("grouping sets that are told apart")


def test_a_key_of_some_sets_that_confines_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def passes(self: GroupsOfSets, expr: Expr) -> bool:
        return Aggregate(self.source, self.group_keys).passes(expr)

    monkeypatch.setattr(GroupsOfSets, "passes", passes)

    assert is_noticed("grouping sets of which all have a key")
    with pytest.raises(AssertionError, match="seed 5"):
        check_sets_seed(5)


def test_different_values_without_their_filter_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    counted_value = cut_blocks._counted_value

    def unfiltered(part: block_part.BlockPart, call: Expr, span: tuple[int, int]) -> str | None:
        value = counted_value(part, call, span)
        return value if value is None else value.rpartition(" then ")[2].removesuffix(" end")

    monkeypatch.setattr(cut_blocks, "_counted_value", unfiltered)

    assert is_noticed("different values of a condition, in branches of a union")
    with pytest.raises(AssertionError, match="seed 0"):
        check_distinct_seed(0)


def test_a_cut_through_a_name_that_means_something_else_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_part, "_ambiguous", lambda *_: frozenset())

    assert is_noticed("a name that an output has, too")
