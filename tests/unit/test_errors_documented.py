"""Every code a user can meet has a section in docs/errors.md, and every section a code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def test_every_error_code_has_a_section() -> None:
    expected: list[str] = []

    actual = sorted(raised_codes() - documented_codes())

    assert actual == expected


def test_every_section_is_about_a_code_that_is_raised() -> None:
    expected: list[str] = []

    actual = sorted(documented_codes() - raised_codes())

    assert actual == expected


def test_every_error_code_is_met_by_a_test() -> None:
    tests = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
    )
    expected: list[str] = []

    actual = sorted(code for code in raised_codes() if code not in tests)

    assert actual == expected


def raised_codes() -> set[str]:
    return {code for path in _modules() for code in _codes_of(path)}


def documented_codes() -> set[str]:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return {line.removeprefix("## ").strip() for line in text.splitlines() if line[:3] == "## "}


def _modules() -> Iterator[Path]:
    yield from (ROOT / "livemart").rglob("*.py")
    yield ROOT / "scripts" / "setup.py"


def _codes_of(path: Path) -> Iterator[str]:
    """The first argument of `*Error(...)`; in scripts, what a message begins with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _makes_errors(node.func, path) and node.args:
            first = node.args[0]
            # A code may be chosen among two at the place where it is raised.
            for part in ast.walk(first) if isinstance(first, ast.IfExp) else [first]:
                if isinstance(part, ast.Constant) and CODE.fullmatch(str(part.value)):
                    yield str(part.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            opening, colon, _ = node.value.partition(":")
            if colon and path.parent.name == "scripts" and CODE.fullmatch(opening):
                yield opening


def _makes_errors(function: ast.expr, path: Path) -> bool:
    """A source's mistakes are collected by a method that adds file and line."""
    name = _name(function)
    return name.endswith("Error") or (
        name in ("refuse", "_refuse", "refuse_unknown") and "project" in path.parts
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
