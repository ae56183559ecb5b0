"""Checks the names of `livemart/`: a public one has one meaning, and each says what it names.

Used by `make lint`; exits with 1 and lists what is wrong. Public names are classes, functions and
constants at the top of a module that do not begin with an underscore: no two modules define the
same. A variable is named after the thing it holds, not after how it was come by.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent / "livemart"
_VAGUE = frozenset(
    {"each", "found", "gone", "kept", "known", "made", "own", "told", "wanted", "what"}
)


def public_names(source: str) -> Iterator[str]:
    """Yield the public names that a module defines, each as often as it does.

    >>> list(public_names("class A: ...\\nB: int = 1\\n_c = D = 2\\ndef e(): ...\\nimport f"))
    ['A', 'B', 'D', 'e']
    """
    for node in ast.parse(source).body:
        names: list[str] = []
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names = [node.name]
            case ast.Assign():
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name() as target):
                names = [target.id]
        yield from (name for name in names if not name.startswith("_"))


def vague_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable or parameter that does not say what it holds.

    >>> list(vague_names("found = 1\\ndef f(own): return [each for each in own]"))
    [(1, 'found'), (2, 'own'), (2, 'each')]
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in _VAGUE:
                yield node.lineno, name


def shared_names(package: Path) -> Mapping[str, list[Path]]:
    """Return the modules of each name that more than one module of a package defines."""
    modules: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        for name in dict.fromkeys(public_names(path.read_text(encoding="utf-8"))):
            modules.setdefault(name, []).append(path)
    return {name: paths for name, paths in modules.items() if len(paths) > 1}


def main() -> int:
    """Print what is wrong with the names of the package; return the exit code."""
    root = _PACKAGE.parent
    mistakes = [
        f"{name}: defined in {', '.join(str(path.relative_to(root)) for path in paths)}; "
        "give one of them a name of its own"
        for name, paths in sorted(shared_names(_PACKAGE).items())
    ]
    for path in sorted(_PACKAGE.rglob("*.py")):
        for line, name in vague_names(path.read_text(encoding="utf-8")):
            place = f"{path.relative_to(root)}:{line}"
            mistakes.append(f"{place}: a variable {name}; name the thing that it holds")
    print("\n".join(mistakes), end="\n" if mistakes else "", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
