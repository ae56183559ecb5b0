"""Runs the hooks of on-run-end once the data tests of a build have ended, with the results of both.

Used by `Dbt`. livemart runs the tests itself, so dbt's own build ends too early for its hooks. It
is kept from them, and a second run of dbt, which builds nothing, begins where the first one ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from livemart.project.dbt_attachment import Replacement
from livemart.project.graph import Project

# As dbt numbers its threads; it takes results of the one called main for those of hooks.
_THREAD = "Thread-1 (worker)"
TestWord = Literal["pass", "warn", "fail", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class TestEnd:
    """The result of a data test: dbt's word, rows that failed, and when and how long it ran."""

    __test__ = False

    status: TestWord
    failures: int | None
    message: str
    took_ms: int
    ended_at: datetime


@dataclass(slots=True)
class UnendedRun:
    """A build of dbt's whose hooks of on-run-end have not run yet.

    `results` are dbt's own, `codes` the SQL that it had compiled by then: each later run of dbt
    clears it from the nodes.
    """

    results: Sequence[Any] = ()
    codes: dict[str, str] = field(default_factory=dict)

    def keeping(self) -> list[Replacement]:
        """Return replacements that hold back a build's last hooks, and note its results."""
        from dbt.task.run import RunTask

        def after_run(task: Any, adapter: Any, results: Sequence[Any]) -> None:
            self.results = [*results]
            self.codes = {
                result.node.unique_id: code
                for result in results
                if (code := getattr(result.node, "compiled_code", None))
            }

        return [(RunTask, "after_run", after_run)]

    def ending(
        self, manifest: Any, project: Project, tests: Mapping[str, TestEnd]
    ) -> list[Replacement]:
        """Return replacements by which a run of dbt begins where this one has ended.

        Args:
            manifest: dbt's.
            project: as it was compiled.
            tests: how its data tests ended, by unique id.
        """
        from dbt.artifacts.schemas.results import RunStatus
        from dbt.task.run import RunTask

        nodes = {result.node.unique_id: result.node for result in self.results}
        codes = dict(self.codes)
        ended = []
        for unique_id, end in tests.items():
            if (node := manifest.nodes.get(unique_id)) is not None:
                nodes[unique_id] = node
                codes[unique_id] = project.tests[unique_id].compiled_code
                ended.append(_result(node, end))
        for unique_id, code in codes.items():
            nodes[unique_id].compiled, nodes[unique_id].compiled_code = True, code
        return [
            (RunTask, "before_run", lambda *_: RunStatus.Success),
            (RunTask, "execute_nodes", lambda task: [*self.results, *ended]),
        ]


def has_end_hooks(manifest: Any) -> bool:
    """Return True if a project, or a package of it, has hooks of on-run-end."""
    return any(
        str(node.resource_type) == "operation" and "on-run-end" in node.tags
        for node in manifest.nodes.values()
    )


def _result(node: Any, end: TestEnd) -> Any:
    """Return dbt's own result of a test; its times are UTC and do not say so."""
    from dbt.artifacts.schemas.results import RunStatus, TestStatus, TimingInfo
    from dbt.artifacts.schemas.run import RunResult

    ended_at = end.ended_at.astimezone(UTC).replace(tzinfo=None)
    began_at = ended_at - timedelta(milliseconds=end.took_ms)
    message: str | None = end.message or None
    if end.status in ("fail", "warn") and end.failures is not None:
        rows = "1 result" if end.failures == 1 else f"{end.failures} results"
        rule = node.config.error_if if end.status == "fail" else node.config.warn_if
        message = f"Got {rows}, configured to {end.status} if {rule}"
    is_skipped = end.status == "skipped"
    return RunResult(
        node=node,
        status=RunStatus.Skipped if is_skipped else TestStatus(end.status),
        timing=[
            TimingInfo("compile", began_at, began_at),
            TimingInfo("execute", began_at, ended_at),
        ],
        thread_id=_THREAD,
        execution_time=end.took_ms / 1000,
        adapter_response={},
        message=message,
        failures=end.failures or 0 if end.status == "pass" else end.failures,
        batch_results=None,
    )
