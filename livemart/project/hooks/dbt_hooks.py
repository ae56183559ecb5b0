"""Finds the statements that the hooks of a project would send in a build.

Used by `Dbt` while it compiles. A question of a hook is answered; its changes are not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from livemart.project.cursors import Cursor
from livemart.project.declared.node_files import NodeFiles
from livemart.project.declared.setting_places import setting_place
from livemart.project.session_spec import bare_statement, is_asking, is_defining

# A statement that dbt sends for a hook of this kind is never sent to Spark, which has no such word.
_TRANSACTIONS = ("begin", "commit")


NOT_RENDERED = "{{ not rendered }}"


class HookFailed(Exception):
    """A hook of on-run-start that dbt cannot render."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The statements of a project's hooks, in the order in which a build sends them.

    `before` and `after` are those of the nodes that have any, by unique id. A hook that only a
    build can render, as it asks for what the build makes, is there as it is written, behind
    `NOT_RENDERED`; so are all of on-run-end. `functions`: the statements that make the project's
    functions, which are no hooks, but define what the SQL of models means as well. `files`: file
    and line of the hooks of a node, by `pre-hook` or `post-hook` and its unique id.
    """

    on_run_start: tuple[str, ...] = ()
    on_run_end: tuple[str, ...] = ()
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    files: Mapping[tuple[str, str], str] = field(default_factory=dict, compare=False)

    def placed(self) -> Iterator[tuple[str, str]]:
        """Yield each statement behind the place of its hook, in words."""
        places: list[tuple[str, tuple[str, ...]]] = [
            ("on-run-start", self.on_run_start),
            ("on-run-end", self.on_run_end),
            *((self._place("pre-hook", key), sent) for key, sent in self.before.items()),
            *((self._place("post-hook", key), sent) for key, sent in self.after.items()),
        ]
        for place, sent in places:
            yield from ((place, statement) for statement in sent)

    def _place(self, kind: str, unique_id: str) -> str:
        file = self.files.get((kind, unique_id))
        return f"{kind} of {unique_id}" if file is None else f"{file}: {kind} of {unique_id}"


NO_HOOKS = Hooks()


class HookLog:
    """Notes the statements that are sent while a hook is rendered.

    `pending`: defining statements that the session in which models are compiled has not run yet;
    `unrendered`: the nodes of on-run-start that only a build can render.
    """

    def __init__(self) -> None:
        self.hooks = NO_HOOKS
        self.pending: list[str] = []
        self.unrendered: set[str] = set()
        self._sent: list[str] | None = None

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Note in a list the statements that are sent in the block."""
        sent: list[str] = []
        self._sent = sent
        try:
            yield sent
        finally:
            self._sent = None

    def cursor(self, cursor: Cursor, node: str | None) -> Cursor:
        """Return a cursor that notes the changes of `cursor` while a hook is rendered.

        Args:
            cursor: for everything else.
            node: that dbt works on; it compiles on-run-start once more, as separate nodes.
        """
        if self._sent is not None:
            return RecordingCursor(cursor, self._sent)
        is_hook = node is not None and node.startswith("operation.")
        return RecordingCursor(cursor, []) if is_hook else cursor


class RecordingCursor:
    """A cursor that answers questions, and notes in `sent` statements that would change something.

    `defines`: statements that change nothing but their session are run, too.
    """

    def __init__(self, cursor: Cursor, sent: list[str], *, defines: bool = False) -> None:
        self._cursor = cursor
        self._sent = sent
        self._defines = defines
        self._is_answered = False

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        return self._cursor.description if self._is_answered else []

    def execute(self, sql: str, *parameters: Any) -> None:
        self._is_answered = is_asking(sql) or (self._defines and is_defining(sql))
        if self._is_answered:
            self._cursor.execute(sql, *parameters)
        else:
            self._sent.append(bare_statement(sql))

    def fetchall(self) -> Sequence[Sequence[Any]] | None:
        return self._cursor.fetchall() if self._is_answered else []

    def fetchone(self) -> Sequence[Any] | None:
        return self._cursor.fetchone() if self._is_answered else None

    def close(self) -> None:
        self._cursor.close()


def render_hooks(task: Any, log: HookLog) -> None:
    """Render all hooks of a compile task's project into `log`.

    Raises:
        HookFailed: naming the hook.
    """
    with _as_in_a_build():
        started: list[str] = []
        for node in _operations(task, "on-run-start"):
            try:
                started += _rendered(task, node, node.raw_code, log)
            except Exception as error:
                text = node.raw_code
                if "is undefined" in str(error) or is_defining(text):
                    words = " ".join(text.split())
                    where = f"{_files(task).of(node)}: hook `{words[:100]}`"
                    raise HookFailed(f"{where}: {error}") from error
                log.unrendered.add(node.unique_id)
                started.append(f"{NOT_RENDERED} {text.strip()}")
            log.pending = [statement for statement in started if is_defining(statement)]
        before: dict[str, tuple[str, ...]] = {}
        after: dict[str, tuple[str, ...]] = {}
        files: dict[tuple[str, str], str] = {}
        for unique_id, node in task.manifest.nodes.items():
            for kind, statements in (("pre_hook", before), ("post_hook", after)):
                sent: list[str] = []
                for hook in getattr(node.config, kind, ()):
                    if _is_run(node, hook):
                        try:
                            sent += _rendered(task, node, hook.sql, log)
                        except Exception:
                            sent.append(f"{NOT_RENDERED} {hook.sql.strip()}")
                if sent:
                    statements[unique_id] = tuple(sent)
                    word = kind.replace("_", "-")
                    place = setting_place(node, _files(task), kind, word)
                    files[word, unique_id] = place or _files(task).of(node)
        ended = (node.raw_code.strip() for node in _operations(task, "on-run-end"))
        # On one line a comment would take in all behind it.
        on_run_end = tuple(f"{NOT_RENDERED} {text}" for text in ended)
        functions = tuple(_function_statements(task))
        log.pending += functions
        log.hooks = Hooks(tuple(started), on_run_end, before, after, functions, files)


def _function_statements(task: Any) -> Iterator[str]:
    """Yield the statement that makes each function, those first that others call.

    dbt's materialization is not run, since it asks which relations there are.

    Raises:
        HookFailed: naming the function.
    """
    from dbt.clients.jinja import get_rendered
    from dbt.context.providers import generate_runtime_function_context

    # dbt leaves a function among them that YAML disables.
    functions = {key: it for key, it in task.manifest.functions.items() if it.config.enabled}
    inputs = {
        key: [other for other in node.depends_on.nodes if other in functions]
        for key, node in functions.items()
    }
    for key in TopologicalSorter(inputs).static_order():
        node = copy(functions[key])
        try:
            context = generate_runtime_function_context(node, task.config, task.manifest)
            # dbt leaves the text out of a node that is not compiled.
            node.compiled, node.compiled_code = True, get_rendered(node.raw_code, context, node)
            context = generate_runtime_function_context(node, task.config, task.manifest)
            this, model = context["this"], context["model"]
            macro = this.get_function_macro_name(this.get_function_config(model))
            make = context["adapter"].dispatch(macro, "dbt")
            yield bare_statement(str(make(this.incorporate(type=this.Function))))
        except Exception as error:
            place = f"{_files(task).of(node)}: function {node.name}"
            raise HookFailed(f"{place}: {error}") from error


def _files(task: Any) -> NodeFiles:
    return NodeFiles(Path(task.config.project_root), task.config.project_name)


def _operations(task: Any, kind: str) -> list[Any]:
    """Return the nodes of on-run-start or on-run-end in dbt's order: those of packages first."""
    nodes = [
        node
        for node in task.manifest.nodes.values()
        if str(node.resource_type) == "operation" and kind in node.tags
    ]
    root = task.config.project_name
    return sorted(nodes, key=lambda it: (it.package_name == root, it.package_name, it.index or 0))


def _is_run(node: Any, hook: Any) -> bool:
    """Return True for a hook that dbt-spark's materialization of the node runs."""
    kind = str(node.resource_type)
    if kind == "model":
        return bool(hook.transaction) and node.config.materialized != "ephemeral"
    return kind in ("seed", "snapshot")


def _rendered(task: Any, node: Any, hook: str, log: HookLog) -> list[str]:
    from dbt.clients.jinja import get_rendered
    from dbt.context.providers import generate_runtime_model_context
    from dbt.hooks import get_hook_dict

    context = generate_runtime_model_context(node, task.config, task.manifest)
    with log.recording() as sent:
        text = str(get_hook_dict(get_rendered(hook, context, node)).get("sql") or "")
        if statement := bare_statement(text):
            sent.append(statement)
    return [statement for statement in sent if statement.lower() not in _TRANSACTIONS]


@contextmanager
def _as_in_a_build() -> Iterator[None]:
    """Let `flags.WHICH` name the command that runs the hooks, not the one that compiles them."""
    from dbt.flags import get_flags

    flags: Any = get_flags()  # type: ignore[no-untyped-call]
    before = flags.WHICH
    object.__setattr__(flags, "WHICH", "build")
    try:
        yield
    finally:
        object.__setattr__(flags, "WHICH", before)
