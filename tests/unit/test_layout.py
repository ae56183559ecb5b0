"""Rooms are said in one line, documented, and tested where a reader looks for the test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "livemart"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
# Kinds whose folders hold the rooms of the package, and rooms that are separate kinds.
KINDS = ("unit", "integration", ".")

# Modules without their own test, and the test below tests/ that covers them. Each group says
# why it has none; a module that gets its own rule gets a test as well.
COVERED = {
    # Their result is tested: the writing of artifacts, the door of the package.
    "run/artifacts/artifact_files.py": "unit/run/artifacts/test_run_results.py",
    "__main__.py": "integration/test_wheel.py",
    # Constants, shapes and protocols without behaviour: they are right where they are used.
    "delta/properties.py": "unit/spark/test_session.py",
    "project/landing_columns.py": "unit/land/test_landing.py",
    "limits.py": "unit/refresh/test_models.py",
    "serve/http/schemas.py": "serve/http/test_schema.py",
    "serve/letters/schemas.py": "serve/http/test_schema.py",
    "serve/models/schemas.py": "serve/http/test_schema.py",
    "serve/owner/schemas.py": "serve/http/test_schema.py",
    "land/records/messages/message.py": "unit/land/records/messages/test_read.py",
    "land/sources/delivery.py": "unit/land/sources/test_log_deliveries.py",
    # Parts of landing whose promise is one of all of them together: each record once, in its place.
    "land/bulk/landing.py": "integration/land/test_landing_bulk.py",
    "land/bulk/staging.py": "integration/land/test_landing_bulk.py",
    "land/micro_batch.py": "unit/land/test_landing.py",
    # Conversations with a broker, a session or an engine, which a stand-in would only repeat.
    "land/sources/nats/client.py": "integration/land/test_nats.py",
    "publish/publisher.py": "publish/test_publications.py",
    "run/batch.py": "integration/run/test_pipeline.py",
    "spark/arrow_views.py": "integration/spark/test_quick_session.py",
    "spark/connect.py": "integration/spark/test_dbt_terminal.py",
    "spark/large_lane.py": "integration/delta/test_committers.py",
    "spark/tables_before.py": "integration/land/test_landing_bulk.py",
    # Asked through the server over a real store, of which they are a way in.
    "serve/app.py": "serve/test_server.py",
    "serve/connections/protocol.py": "attacks/test_silence.py",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def mirrors_of(module: str) -> list[Path]:
    path = Path(module)
    mirrored = path.with_name(f"test_{path.name}")
    return [test for kind in KINDS if (test := ROOT / "tests" / kind / mirrored).is_file()]


def test_a_module_has_its_test_where_its_room_is() -> None:
    untested = [module for module in map(name_of, MODULES) if not mirrors_of(module)]

    assert set(untested) <= COVERED.keys(), "write it as tests/unit/.../test_*.py"


def test_the_exceptions_are_modules_without_a_test() -> None:
    assert {module for module in COVERED if mirrors_of(module)} == set()
    assert set(COVERED) <= set(map(name_of, MODULES))
    assert {test for test in COVERED.values() if not (ROOT / "tests" / test).is_file()} == set()


def test_a_room_says_its_concern_in_one_line_and_nothing_else() -> None:
    for room in ROOMS:
        (statement,) = ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body

        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant), room
        assert "\n" not in str(statement.value.value), room


def test_a_room_holds_at_most_twenty_modules() -> None:
    for room in ROOMS:
        modules = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= 20, room


def test_the_documented_rooms_are_the_folders() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Rooms\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    files = {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    assert documented == {str(room.relative_to(PACKAGE)) for room in ROOMS} | files


def test_a_module_begins_with_a_sentence() -> None:
    for module in MODULES:
        docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))

        assert docstring, f"{name_of(module)} has no docstring"
        assert docstring.splitlines()[0].endswith("."), f"{name_of(module)}: first line"
