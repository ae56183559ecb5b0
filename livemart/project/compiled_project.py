"""Holds a project as dbt has compiled it.

Used by `Dbt` alone, which compiles some nodes again, or builds them, as time goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from livemart.errors import ConfigError
from livemart.project.graph import Project
from livemart.project.hooks.dbt_hooks import Hooks
from livemart.project.manifest import read_manifest
from livemart.project.node_results import without_plan
from livemart.project.questions import Question, QuestionLog
from livemart.project.run_values import mentions_run

_OF_THE_GRAPH = ("model.", "snapshot.", "test.")


@dataclass(eq=False)
class CompiledProject:
    """A project as it was read: dbt's data on each node, and the graph that is computed from them.

    `is_table`: whether the warehouse has a table of this name. `refused`: dbt's message for each
    node that it could not compile. `samples`: SQL of nodes in the two fixed runs, empty where dbt
    refuses it.
    """

    directory: str
    manifest: Any
    _: KW_ONLY
    schema: str
    parameters: Mapping[str, str]
    hooks: Hooks
    is_table: Callable[[str], bool] = lambda relation: False
    project: Project = field(init=False)
    refused: dict[str, str] = field(default_factory=dict, init=False)
    samples: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._compiled: dict[str, str] = {}
        self._asked: dict[str, tuple[Question, ...]] = {}
        self._mentioning: dict[str, bool] = {}

    @property
    def run_dependent(self) -> frozenset[str]:
        """The nodes, compiled or refused, whose SQL may differ from run to run."""
        ended = self._compiled.keys() | self.refused.keys()
        return frozenset(
            unique_id
            for unique_id in ended & self.manifest.nodes.keys()
            if unique_id.startswith(_OF_THE_GRAPH)
            and not self.manifest.nodes[unique_id].is_ephemeral_model
            and self._mentions(unique_id)
        )

    def _mentions(self, unique_id: str) -> bool:
        """Return True if a node, a macro or an ephemeral model in it may mention the run."""
        if unique_id not in self._mentioning:
            node = self.manifest.nodes[unique_id]
            arguments = getattr(node, "test_metadata", None)
            self._mentioning[unique_id] = (
                mentions_run([node.raw_code, str(arguments.kwargs if arguments else "")])
                or any(map(self._macro_mentions, _above(node, "macros")))
                or any(map(self._mentions, self._inside(unique_id)))
            )
        return self._mentioning[unique_id]

    def _macro_mentions(self, unique_id: str) -> bool:
        """Return True if a macro, or one that it calls, directly or not, may mention the run."""
        if unique_id not in self._mentioning:
            below, stack = set[str](), [unique_id]
            while stack:
                macro = stack.pop()
                if macro in self.manifest.macros and macro not in below:
                    below.add(macro)
                    stack.extend(_above(self.manifest.macros[macro], "macros"))
            texts = (self.manifest.macros[macro].macro_sql for macro in below)
            self._mentioning[unique_id] = mentions_run(texts)
        return self._mentioning[unique_id]

    @property
    def asking(self) -> frozenset[str]:
        """The nodes that asked the warehouse."""
        return frozenset(unique_id for unique_id, asked in self._asked.items() if asked)

    def take(self, results: Iterable[Any], questions: QuestionLog) -> set[str]:
        """Take over the nodes that dbt has compiled, or could not; return their unique ids."""
        ended_nodes = set()
        for ended in results:
            unique_id = ended.node.unique_id
            ended_nodes.add(unique_id)
            asked = self._asked_by(unique_id, questions)
            if str(ended.status) == "success":
                self._compiled[unique_id] = ended.node.compiled_code
                self._asked[unique_id] = asked
                self.refused.pop(unique_id, None)
            elif str(ended.status) != "skipped":
                self._compiled.pop(unique_id, None)
                # One that fails before it asks anything is asked again all the same.
                self._asked[unique_id] = asked or self.questions_of(unique_id)
                self.refused[unique_id] = without_plan(str(ended.message))
        self._take_ephemeral()
        return ended_nodes

    def take_built(self, results: Iterable[Any], questions: QuestionLog) -> bool:
        """Take over the SQL that dbt has run, for each node whose SQL may have changed.

        Returns:
            True if there may be such a node.
        """
        has_other_sql = False
        for ended in results:
            unique_id, code = ended.node.unique_id, getattr(ended.node, "compiled_code", None)
            asked = self._asked_by(unique_id, questions)
            if not questions.hides_own_table(getattr(ended.node, "config", None)):
                # dbt compiles it for the rows that are not stored yet.
                continue
            if code and (asked or unique_id in self.samples):
                has_other_sql = True
                self._compiled[unique_id] = code
                self._asked[unique_id] = asked
                self.refused.pop(unique_id, None)
        if has_other_sql:
            self._take_ephemeral()
        return has_other_sql

    def _take_ephemeral(self) -> None:
        # They are compiled into their users; dbt reports no result of theirs.
        for unique_id, node in self.manifest.nodes.items():
            if node.is_ephemeral_model and node.compiled_code is not None:
                self._compiled[unique_id] = node.compiled_code

    def _asked_by(self, unique_id: str, questions: QuestionLog) -> tuple[Question, ...]:
        """Return the questions of a node, and of ephemeral models inside it."""
        asked = dict.fromkeys(questions.asked.get(unique_id, ()))
        for parent in self._inside(unique_id):
            asked |= dict.fromkeys(self._asked_by(parent, questions))
        return tuple(asked)

    def _inside(self, unique_id: str) -> list[str]:
        """Return the ephemeral models that dbt compiles into a node."""
        nodes = self.manifest.nodes
        above = _above(nodes.get(unique_id), "nodes")
        return [parent for parent in above if parent in nodes and nodes[parent].is_ephemeral_model]

    def questions_of(self, unique_id: str) -> tuple[Question, ...]:
        """Return the questions of a node when it was compiled last."""
        return self._asked.get(unique_id, ())

    def keep_answers(self, unique_id: str, questions: tuple[Question, ...]) -> None:
        """Note the present answers to a node's questions."""
        self._asked[unique_id] = questions
        asked = {**self.project.questions, unique_id: questions}
        self.project = replace(self.project, questions=asked)

    def renew(self) -> list[ConfigError]:
        """Make the graph again; return every mistake in the project's settings for livemart."""
        questions = {unique_id: asked for unique_id, asked in self._asked.items() if asked}
        self.project, mistakes = read_manifest(
            self.manifest,
            self._compiled,
            directory=self.directory,
            target_schema=self.schema,
            parameters=self.parameters,
            hooks=self.hooks,
            questions=questions,
            refused=self.refused,
            samples=self.samples,
            is_table=self.is_table,
        )
        return mistakes


def _above(node: Any, kind: str) -> Sequence[str]:
    """Return the nodes, or the macros, that dbt knows that a node or a macro depends on."""
    above: Sequence[str] = getattr(getattr(node, "depends_on", None), kind, ())
    return above
