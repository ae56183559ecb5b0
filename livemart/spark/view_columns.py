"""Enters views into Spark's catalog with the columns that Spark gave them in an earlier session.

Used by the catalog when a session begins: analysing the views of a project is a good part of a
command of seconds. The columns of a view follow from Spark's version, the settings of its session,
its SQL, the functions of the project, and the columns of its inputs. As long as these are the same,
so is its entry, also within a session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from livemart.delta.warehouse import Warehouse
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import flatten
from livemart.project.session_spec import PLAIN, SessionSpec
from livemart.project.sessions import session_of
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Gives the relations that a view's SQL names; None if they are unknown.
_Reads = Callable[[str], tuple[str, ...] | None]
# The mode that Spark notes for `create view` without a word about it.
_USUAL_MODE = "COMPENSATION"
# The views that a session has made, by relation: their digests then, and their entries.
_MADE: MutableMapping[SparkSession, dict[str, tuple[str | None, str]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ProjectView:
    """The SQL of a view, and the session that gives it its meaning."""

    sql: str
    session: SessionSpec = PLAIN


@dataclass(frozen=True, slots=True)
class _Analysed:
    """Spark's analysis of a view."""

    reads: tuple[str, ...]
    """The relations that it names."""
    digest: str
    """The digest of everything that the columns follow from."""
    text: str
    """The SQL without the text around it."""
    schema: str
    """A struct as Spark writes it in JSON."""


class ViewColumns:
    """The columns of a warehouse's views, from one session to the next.

    Args:
        spark: the engine's session, with its own JVM.
        warehouse: root of all tables.
        views: all that the catalog is to hold, by relation.
        tables: the stored tables that it holds.
        functions: the statements that make the functions that views may call.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: StoragePlace,
        views: Mapping[str, ProjectView],
        tables: Iterable[str],
        functions: Sequence[str] = (),
    ) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._warehouse = Warehouse(warehouse)
        self._path = StateFolder(warehouse).view_columns
        self._views = views
        self._functions = functions
        self._tables = {relation.lower(): relation for relation in tables}
        self._schemas: dict[str, str | None] = {}
        self._sessions: dict[SessionSpec, str] = {}
        # A view that many views read is looked at once.
        self._digests: dict[tuple[str, _Reads], str | None] = {}

    def digests(self, relations: Iterable[str]) -> dict[str, str | None]:
        """Return a digest of all that the columns of each view follow from now."""
        return {relation: self._digest(relation, self._reads) for relation in relations}

    def kept_digests(self, relations: Iterable[str]) -> dict[str, str | None]:
        """Return the digests of views that were entered or kept."""
        views = self._analysed
        return {name: views[name].digest if name in views else None for name in relations}

    def is_made(self, relation: str, digest: str | None) -> bool:
        """Return True if a view of the catalog would be the same if it were made again."""
        noted = _MADE.get(self._spark, {}).get(relation)
        return digest is not None and noted == (digest, self._entry(relation))

    def note(self, digests: Mapping[str, str | None]) -> None:
        """Note the digests, from before they were made, of views that this session has made."""
        views = _MADE.setdefault(self._spark, {})
        views |= {name: (digest, self._entry(name)) for name, digest in digests.items()}

    def _entry(self, relation: str) -> str:
        """Return SQL and columns of a view of the catalog: dbt may have made it as well."""
        entry = self._external.getTable(*relation.split(".", 1))
        return f"{entry.viewText().get()}\n{entry.schema().json()}"

    def enter(self, relation: str) -> bool:
        """Make the entry that `create view` makes; return False if that has to analyse the view.

        The view must not be in the catalog.
        """
        analysed = self._analysed.get(relation)
        if analysed is None:
            return False
        if self._digest(relation, self._kept_reads) != analysed.digest:
            return False
        session = self._session(self._views[relation].session)
        entry = self._prepare(session, relation, analysed)
        session.sessionState().catalog().createTable(entry, False, True)
        return True

    @cached_property
    def _prepare(self) -> Callable[[Any, str, _Analysed], Any]:
        """Return a function that makes an entry of the catalog in a session.

        It is Spark's own, which takes the columns from a plan: from one that has nothing else. It
        is looked up once, as each name is a call.
        """
        scala, sql = self._jvm.scala, self._jvm.org.apache.spark.sql
        prepare = sql.execution.command.ViewHelper.prepareTable
        identifier, struct = sql.catalyst.TableIdentifier, sql.types.DataType.fromJson
        plan = _module(sql.catalyst.plans.logical, "LocalRelation")
        mode = _module(sql.catalyst.analysis, "SchemaCompensation")
        no_list = _module(scala.collection.immutable, "Nil")
        no_map = _module(scala.collection.immutable, "Map").empty()
        some, none = scala.Some, scala.Option.empty()
        catalog = some("spark_catalog")

        def entry(session: Any, relation: str, analysed: _Analysed) -> Any:
            schema, name = relation.split(".", 1)
            return prepare(
                session,
                identifier(name, some(schema), catalog),
                some(analysed.text),
                plan.apply(struct(analysed.schema)),
                no_list,
                no_map,
                mode,
                none,
                none,
                False,
            )

        return entry

    def keep(self, relations: Iterable[str]) -> None:
        """Keep the columns of views that Spark has just analysed, and forget views that are gone.

        Only of a session that has begun with this catalog: what else it knows, no other may.
        """
        analysed = {name: it for name, it in self._analysed.items() if name in self._views}
        for relation in relations:
            analysed.pop(relation, None)
            names, digest = self._reads(relation), self._digest(relation, self._reads)
            entry = self._external.getTable(*relation.split(".", 1))
            if (
                names is not None
                and digest is not None
                and entry.viewSchemaMode().toString() == _USUAL_MODE
            ):
                analysed[relation] = _Analysed(
                    names, digest, entry.viewText().get(), entry.schema().json()
                )
        if analysed != self._analysed:
            write_state_file(self._path, analysed)
            self._analysed = analysed

    @cached_property
    def _external(self) -> Any:
        return self._session(PLAIN).sessionState().catalog().externalCatalog()

    @cached_property
    def _analysed(self) -> Mapping[str, _Analysed]:
        # Not kept yet, or not by us: Spark analyses them again.
        with suppress(OSError):
            return read_state_file(self._path, dict[str, _Analysed]) or {}
        return {}

    def _reads(self, relation: str) -> tuple[str, ...] | None:
        """Return the relations that a view's SQL names; None if they are unknown."""
        return _named_by(self._views[relation].sql)

    def _kept_reads(self, relation: str) -> tuple[str, ...] | None:
        """Return the relations that a view's SQL named in an earlier session, without parsing."""
        return self._analysed[relation].reads if relation in self._analysed else None

    def _digest(self, relation: str, reads: _Reads, above: tuple[str, ...] = ()) -> str | None:
        """Return a digest of all that the columns of a view follow from; None if it is not known.

        That is also so for a view that reads what no warehouse holds, such as a file by its path.
        """
        if (relation, reads) not in self._digests:
            self._digests[relation, reads] = self._new_digest(relation, reads, above)
        return self._digests[relation, reads]

    def _new_digest(self, relation: str, reads: _Reads, above: tuple[str, ...]) -> str | None:
        view = self._views.get(relation)
        if view is None or relation in above or (names := reads(relation)) is None:
            return None
        if (settings := self._settings(view.session)) is None:
            return None
        parts = [settings, view.sql, *self._functions]
        for name in names:
            part = (
                self._digest(name, reads, (*above, relation))
                if name in self._views
                else self._columns(name)
            )
            if part is None:
                return None
            parts.append(part)
        return sha256(json.dumps(parts).encode()).hexdigest()

    def _columns(self, relation: str) -> str | None:
        if relation not in self._schemas:
            stored = self._tables.get(relation)
            self._schemas[relation] = stored and self._warehouse.logged_schema(stored)
        return self._schemas[relation]

    def _settings(self, spec: SessionSpec) -> str | None:
        """Return Spark's version and all settings of a session that it keeps with a view.

        None if there is no such session now.
        """
        from pyspark.errors import AnalysisException

        if spec not in self._sessions:
            try:
                state = self._session(spec).sessionState()
            except AnalysisException:
                return None
            helper = self._jvm.org.apache.spark.sql.execution.command.ViewHelper
            settings = helper.sqlConfigsToProps(state.conf(), "").toString()
            place = ".".join(state.catalogManager().currentNamespace())
            self._sessions[spec] = f"{self._spark.version} {place} {spec.text} {settings}"
        return self._sessions[spec]

    def _session(self, spec: SessionSpec) -> Any:
        return session_of(self._spark, spec)._jsparkSession


@lru_cache(maxsize=4096)
def _named_by(sql: str) -> tuple[str, ...] | None:
    """Return the relations that a view's SQL names; None if they are unknown."""
    try:
        return flatten(sql, {}).relations
    except Inapplicable:
        return None


def _module(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
