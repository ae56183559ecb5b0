"""Says where a reason is written: its line counts in a text that has the views inlined.

Used wherever a reason is shown. Each view has its own file, and compiled SQL has lines that no
file has: those of macros, and of the ephemeral models that a model reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import lines_of
from livemart.project.graph import Model, Project
from livemart.project.test_places import written_line


@dataclass(frozen=True, slots=True)
class ReasonPlace:
    """A line, from 1, of a model's file; `is_compiled`: of its compiled SQL, which has others."""

    file: str
    line: int | None = None
    is_compiled: bool = False

    def __str__(self) -> str:
        if self.line is None:
            return self.file
        if self.is_compiled:
            return f"{self.file}: line {self.line} of its compiled SQL"
        return f"{self.file}:{self.line}"


def reason_place(
    project: Project, model: Model, views: Mapping[str, str], line: int | None
) -> ReasonPlace:
    """Return the place of a line of a model's flat text.

    Args:
        project: has the files of the views.
        model: whose SQL was planned.
        views: SELECT text of every view that was inlined, by relation.
        line: from 1; None of a reason without a line.
    """
    text = model.compiled_code or ""
    if line is None:
        return ReasonPlace(model.file)
    try:
        lines = lines_of(text, views)
    except Inapplicable:
        lines = []
    relation, own_line = lines[line - 1] if line <= len(lines) else (None, line)
    files = {model.relation: model.file for model in project.models.values()}
    file = model.file if relation is None else files[relation]
    code = text if relation is None else views[relation]
    written = written_line(project, file, code, own_line)
    return ReasonPlace(file, written or own_line, is_compiled=written is None)
