"""Every example in a docstring is what the code does, and each rule of the planner has one.

Takes 3 seconds.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.plan.examples import show

_ROOT = Path(__file__).resolve().parents[2]
_PLAN = _ROOT / "livemart" / "plan"


def named(path: Path) -> str:
    return ".".join(path.relative_to(_ROOT).with_suffix("").parts)


def modules_in(folder: Path) -> list[str]:
    return sorted(named(path) for path in folder.glob("*.py") if path.name != "__init__.py")


def rules_of(module: ModuleType) -> Iterator[str]:
    """Yield the public classes of a relation, the public functions of a strategy."""
    is_rule = inspect.isclass if ".relations." in module.__name__ else inspect.isfunction
    for name, value in vars(module).items():
        if is_rule(value) and value.__module__ == module.__name__ and name[0] != "_":
            yield name


WITH_EXAMPLES = sorted(
    named(path)
    for path in (_ROOT / "livemart").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
RULES = [*modules_in(_PLAN / "relations"), *modules_in(_PLAN / "strategies")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_are_what_it_does(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), extraglobs={"show": show})

    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_the_planner_shows_what_a_change_asks_for(name: str) -> None:
    module = importlib.import_module(name)
    rules = list(rules_of(module))

    assert name in WITH_EXAMPLES
    assert [rule for rule in rules if ">>> " not in (getattr(module, rule).__doc__ or "")] == []
