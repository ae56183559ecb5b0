"""The planner: which strategy refreshes a model, and everything the engine must know to do it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from livemart.plan.constants import constants_of
from livemart.plan.determinism import require_deterministic
from livemart.plan.flatten import Flat, flatten
from livemart.plan.guards import check_functions, check_names
from livemart.plan.merged_keys import mark_written
from livemart.plan.notes import Known, growth, notes_of
from livemart.plan.parse import parse
from livemart.plan.reasons import Reason, Unplannable
from livemart.plan.relation import Relation, Restriction, Scan, Want, column, sql_of
from livemart.plan.rules.gate import Gate, Window
from livemart.plan.running import Running, running_totals
from livemart.plan.scopes import Query, build_query
from livemart.plan.signed import Signed, origins, signed_change
from livemart.plan.slices import Slice, Windows, slices_of, windows_of

Strategy = Literal["append", "signed", "region", "full", "view"]
_SAFE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_TOUCHED = re.compile(r"__touched_(\d+)__")


@dataclass(frozen=True, slots=True)
class Affected:
    """SQL for the affected keys of one occurrence's touched rows.

    `columns`: if the keys are plain columns or integers, their names or values, else None.
    """

    occurrence: int
    query: str
    columns: tuple[str | int, ...] | None


@dataclass(frozen=True, slots=True)
class Region:
    """How an affected region is found and what is read to recompute it.

    `keys` are output columns; `time` is the output column of the intervals, with `before` and
    `after` microseconds around each change. `affected`: SQL that
    returns w0, w1, ... (the keys, then the time). `windows`: by occurrence, where a row that
    changed must lie to affect anything, if not anywhere.
    """

    keys: tuple[str, ...]
    time: str | None
    before: int
    after: int
    affected: tuple[Affected, ...]
    restrictions: Mapping[int, tuple[Restriction, ...]]
    windows: Mapping[int, Windows]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the planner knows about the relations a query reads, by `schema.identifier`.

    `growing`: the event time, if it has one, of each relation that is never done.
    """

    columns: Mapping[str, tuple[str, ...]]
    unique: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    clocks: frozenset[str] = frozenset()
    append_only: frozenset[str] = frozenset()
    growing: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """How one model is refreshed.

    `unique_key`: output columns that the SQL itself proves unique; `origins`: by output column of
    linear SQL, the anchors' stored columns (occurrence, name) that each of its values is one of;
    `parameters`: occurrences read for one value (True: only compared with times); `slices`: see
    Slice; `used`: stored columns that the query needs, where fewer than all are enough.
    """

    strategy: Strategy
    reasons: tuple[Reason, ...] = ()
    flat: Flat | None = None
    names: tuple[str, ...] = ()
    unique_key: tuple[str, ...] = ()
    origins: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    signed: Signed | None = None
    region: Region | None = None
    running: Running | None = None
    slices: tuple[Slice, ...] = ()
    parameters: Mapping[int, bool] = field(default_factory=dict)
    used: Mapping[int, frozenset[str]] = field(default_factory=dict)
    is_volatile: bool = False
    fingerprint: str = ""


def plan_query(text: str, inputs: Inputs) -> Plan:
    """Return the plan of a SELECT stored as a table. Never raises: what has no rule is full."""
    try:
        flat = flatten(text, inputs.views)
    except Unplannable as error:
        return Plan("full", (error.reason,))
    except Exception as error:
        return Plan("full", (_unknown(error),))
    try:
        tree = parse(flat.text)
        require_deterministic(tree)
        query, used, notes = _query(tree, flat, inputs)
        plan = replace(_plan(query, flat, inputs), used=used)
        return plan if plan.strategy == "full" else _noted(plan, notes, inputs)
    except Unplannable as error:
        is_volatile = error.reason.code == "EXPRESSION_NOT_DETERMINISTIC"
        return Plan("full", (error.reason,), flat, is_volatile=is_volatile)
    except Exception as error:
        # A shape the parser or the analysis does not know is recomputed, never guessed.
        return Plan("full", (_unknown(error),), flat)


def _unknown(error: Exception) -> Reason:
    """Return the reason for what the parser or the analysis stumbled over."""
    return Reason("PARSE_UNSUPPORTED", f"{type(error).__name__}: {_first_line(error)}", None)


def _noted(plan: Plan, notes: tuple[Reason, ...], inputs: Inputs) -> Plan:
    """Return a plan with the notes on its SQL, and on what its region reads."""
    assert plan.flat is not None
    reads_frames = any(note.code == "WINDOW_UNBOUNDED" for note in notes)
    if plan.strategy == "region" and plan.region and plan.running is None and not reads_frames:
        bounded = {*plan.region.windows, *plan.parameters}
        relations = {
            each.index: each.relation for each in plan.flat.occurrences if each.index not in bounded
        }
        note = growth(plan.region.restrictions, relations, inputs.growing)
        notes = notes if note is None else (*notes, note)
    return replace(plan, reasons=(*plan.reasons, *notes))


def _query(
    tree: exp.Expr, flat: Flat, inputs: Inputs
) -> tuple[Query, dict[int, frozenset[str]], tuple[Reason, ...]]:
    check_functions(tree)
    by_name = {occurrence.placeholder.lower(): occurrence for occurrence in flat.occurrences}
    schema: dict[str, object] = {}
    for name, occurrence in by_name.items():
        if occurrence.relation not in inputs.columns:
            message = f"the columns of {occurrence.relation} are not known"
            raise Unplannable(Reason("INPUT_NOT_IN_DELTA", message, None))
        schema[name] = {known.lower(): "unknown" for known in inputs.columns[occurrence.relation]}
    mark_written(tree)
    qualified = qualify(
        tree,
        schema=schema,
        dialect="spark",
        validate_qualify_columns=False,
        quote_identifiers=False,
        identify=False,
    )
    scans: dict[str, Scan] = {}

    def scan_of(name: str) -> Scan | None:
        occurrence = by_name.get(name.lower())
        if occurrence is None:
            return None
        relation = occurrence.relation
        return scans.setdefault(
            name.lower(),
            Scan(
                occurrence.index,
                relation,
                tuple(known.lower() for known in inputs.columns[relation]),
                [
                    frozenset(sql_of(column(part.lower())) for part in key)
                    for key in inputs.unique.get(relation, ())
                ],
            ),
        )

    if not isinstance(qualified, exp.Query):
        raise Unplannable(Reason("PARSE_UNSUPPORTED", "not a SELECT", None))
    for identifier in qualified.find_all(exp.Identifier):
        # One spelling per name: expressions are compared by their text.
        if identifier.args.get("quoted") and _SAFE_NAME.fullmatch(identifier.name):
            identifier.set("quoted", False)
    check_names(qualified)
    used = _used_columns(qualified, {name: found.index for name, found in by_name.items()})
    relations = {name: found.relation for name, found in by_name.items()}
    notes: tuple[Reason, ...] = ()
    # A shape that the notes do not know has none; the rules below decide about the plan.
    with suppress(Exception):
        notes = notes_of(qualified, Known(relations, inputs.growing, inputs.clocks))
    return build_query(qualified, scan_of, inputs.clocks.__contains__), used, notes


def _used_columns(
    qualified: exp.Query, occurrences: Mapping[str, int]
) -> dict[int, frozenset[str]]:
    """Return the stored columns a query needs; none where that is not for certain."""
    if any(
        isinstance(node, exp.Lateral | exp.SetOperation) and not _is_plain_union(node)
        for node in qualified.walk()
    ):
        return {}
    if any(table.alias_column_names for table in qualified.find_all(exp.Table)):
        # `from orders as o (a, b)`: the query names no stored column.
        return {}
    pruned = pushdown_projections(qualified.copy())
    used: dict[int, set[str]] = {}
    for scope in traverse_scope(pruned):
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name.lower() in occurrences:
                names = used.setdefault(occurrences[source.name.lower()], set())
                names |= {found.name for found in scope.source_columns(alias)}
                if scope.stars:
                    return {}
    return {occurrence: frozenset(names) for occurrence, names in used.items()}


def _is_plain_union(node: exp.Expr) -> bool:
    """Return True for UNION [ALL] as it is usually written: columns meet by position."""
    return type(node) is exp.Union and not any(
        node.args.get(name) for name in ("by_name", "kind", "side")
    )


def _plan(query: Query, flat: Flat, inputs: Inputs) -> Plan:
    parameters = {
        parameter.occurrence: parameter.compared_with_time
        for parameter in query.parameters.values()
    }
    slices, unsliced = slices_of(query)
    for occurrence in unsliced:
        parameters[occurrence] = False
    signed = signed_change(query)
    region: Region | None = None
    reason: Reason | None = None
    try:
        region = _region(query)
    except Unplannable as error:
        reason = error.reason
    if signed is None and region is None:
        assert reason is not None
        return Plan("full", (reason,), flat, query.names, parameters=parameters)
    unique = _unique_key(query)
    notes = tuple(
        Reason(
            "SCALAR_SUBQUERY_CHANGED",
            f"{flat.occurrences[occurrence].relation} is read for a value: "
            "when it changes, every row may",
            None,
            "compare it with a time, or join it",
        )
        for occurrence, compared in parameters.items()
        if not compared
    )
    strategy: Strategy = "region" if signed is None else "signed"
    if signed is not None and signed.outputs is None and not slices:
        read = {occurrence.relation for occurrence in flat.occurrences}
        if read <= inputs.append_only and not signed.lookups:
            strategy = "append"
    return Plan(
        strategy,
        notes,
        flat,
        query.names,
        unique,
        origins(query, signed) if signed is not None else {},
        signed,
        region,
        running_totals(query) if not parameters else None,
        slices,
        parameters,
    )


def _region(query: Query) -> Region:
    top = query.top
    gates = [relation for relation in top.walk() if isinstance(relation, Gate)]
    names = [column(name) for name in query.names]
    keys = [name for name in names if top.is_local(name, anchored=True)]
    if all(constants_of(top, key) is not None for key in keys):
        keys = [name for name in names if top.is_local(name, anchored=False)]
    time = None
    if any(isinstance(gate, Window) and gate.frame is not None for gate in gates):
        times = (name for name in names if top.is_local_time(name) and top.meets_frame(name))
        time = next(times, None)
    keys = [key for key in keys if time is None or sql_of(key) != sql_of(time)]
    if not gates:
        unique = next(
            (
                key
                for key in sorted(top.unique_keys(), key=len)
                if key <= {sql_of(name) for name in keys}
            ),
            None,
        )
        if unique is not None:
            keys = [key for key in keys if sql_of(key) in unique]
    if not any(_varies(top, key) for key in keys) and time is None:
        raise Unplannable(
            Reason(
                "KEY_NOT_IN_OUTPUT",
                "no output column confines a change: "
                + "; ".join(_gate_text(gate) for gate in gates[:3]),
                None,
                "carry a common key of every GROUP BY and PARTITION BY to the output",
            )
        )
    want = [*keys, *([time] if time is not None else [])]
    affected = []
    for sql in top.affected(want):
        match = _TOUCHED.search(sql)
        assert match is not None
        affected.append(Affected(int(match.group(1)), sql, _plain_columns(sql)))
    found: dict[int, list[Restriction]] = {}
    top.restrict(Want(tuple(keys), time), found)
    before, after = _margins(gates) if time is not None else (0, 0)
    return Region(
        tuple(key.name for key in keys),
        None if time is None else time.name,
        before,
        after,
        tuple(affected),
        {occurrence: tuple(items) for occurrence, items in found.items()},
        windows_of(top),
    )


_PLAIN = re.compile(r"select distinct (.+) from __touched_\d+__")
_PLAIN_ITEM = re.compile(r"(?:`?([A-Za-z_][A-Za-z0-9_]*)`?|(-?\d+)) as w\d+")


def _plain_columns(sql: str) -> tuple[str | int, ...] | None:
    """Return the columns and integers of a select list that holds nothing else."""
    whole = _PLAIN.fullmatch(sql)
    if whole is None:
        return None
    found: list[str | int] = []
    for item in whole.group(1).split(", "):
        match = _PLAIN_ITEM.fullmatch(item)
        if match is None:
            return None
        found.append(match.group(1) if match.group(1) else int(match.group(2)))
    return tuple(found)


def _varies(top: Relation, key: exp.Expr) -> bool:
    """Return False for a column that is one constant."""
    constants = constants_of(top, key)
    return constants is None or len(constants) > 1


def _margins(gates: Sequence[Gate]) -> tuple[int, int]:
    """Return the sums of the frames' margins: no path through the query can widen a change more."""
    frames = [gate.frame for gate in gates if isinstance(gate, Window) and gate.frame is not None]
    distinct = {id(frame): frame for frame in frames}.values()
    return sum(frame.before for frame in distinct), sum(frame.after for frame in distinct)


def _gate_text(gate: Gate) -> str:
    kind = "PARTITION BY" if isinstance(gate, Window) else "GROUP BY"
    return f"{kind} {', '.join(map(sql_of, gate.keys)) or '()'}"


def _unique_key(query: Query) -> tuple[str, ...]:
    names = {sql_of(column(name)): name for name in query.names}
    for key in sorted(query.top.unique_keys(), key=len):
        if key and all(text in names for text in key):
            return tuple(name for text, name in names.items() if text in key)
    return ()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
