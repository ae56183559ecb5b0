"""Counts the places that touch files without a storage, for each module of the package.

Used by `make lint`. Tables and state belong to a storage, which may be a bucket; a path belongs to
this machine. The counts are kept in `touches.json` and may only fall: exits with 1 and lists the
places of each count that rose. `--write` stores counts that fell.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = _ROOT / "livemart"
_COUNTS = _ROOT / "scripts" / "touches.json"
# The room that keeps objects, on a disk as well.
_STORAGE = _PACKAGE / "storage"

_MODULES = frozenset({"fcntl", "mmap", "os", "shutil", "tempfile"})
# Functions of these that touch no file.
_OTHERS = frozenset(
    {
        "_exit", "fsdecode", "fsencode", "getpgrp", "getpid", "getuid", "kill", "strerror",
        "sysconf", "tcgetpgrp", "which",
    }
)  # fmt: skip
# Methods of a path. One that takes an argument there, or a text, has none of another kind here.
_METHODS = frozenset(
    {
        "chmod", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat",
        "mkdir", "read_bytes", "read_text", "rename", "rglob", "rmdir", "stat", "symlink_to",
        "touch", "unlink", "write_bytes", "write_text",
    }
)  # fmt: skip


def touches(source: str) -> Iterator[int]:
    """Yield the line of each touch in the source of a module.

    >>> list(touches("os.getpid()\\nos.stat(p)\\nopen(p)\\np.open('rb')\\nstore.open(url)"))
    [2, 3, 4]
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=module) if module in _MODULES:
                names = [name.name for name in node.names]
            case ast.Call(func=ast.Name(id="open")):
                names = ["open"]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if (
                module in _MODULES
            ):
                names = [name]
            case ast.Call(func=ast.Attribute(attr="open" | "exists" as name)):
                is_path = all(isinstance(it, ast.Constant) for it in node.args)
                names = [name] if is_path else []
            case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
                names = [name]
            case _:
                continue
        yield from (node.lineno for name in names if name not in _OTHERS)


@cache
def places() -> dict[str, list[int]]:
    """Return the lines of the touches of each module, without the modules that have none."""
    modules = (path for path in sorted(_PACKAGE.rglob("*.py")) if _STORAGE not in path.parents)
    lines = {path: sorted(touches(path.read_text(encoding="utf-8"))) for path in modules}
    return {str(path.relative_to(_PACKAGE)): found for path, found in lines.items() if found}


def risen_touches(before: Mapping[str, int], now: Mapping[str, list[int]]) -> Iterator[str]:
    """Yield a line for each module that has more touches than before, with their places.

    >>> list(risen_touches({"a.py": 1, "b.py": 1}, {"a.py": [3], "b.py": [4, 9]}))
    ['livemart/b.py: 2, at most 1: lines 4, 9']
    """
    for module, lines in now.items():
        if len(lines) > (most := before.get(module, 0)):
            at = ", ".join(map(str, lines))
            yield f"livemart/{module}: {len(lines)}, at most {most}: lines {at}"


def main(arguments: list[str] | None = None) -> int:
    """Print the number of touches, and the modules that have more; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="store counts that fell")
    options = parser.parse_args(arguments)
    now, before = places(), json.loads(_COUNTS.read_text(encoding="utf-8"))
    print(f"{sum(map(len, now.values()))} places in {len(now)} modules touch files directly")
    if mistakes := list(risen_touches(before, now)):
        print("\n".join(mistakes), file=sys.stderr)
        print("  next: let a storage do it, see docs/architecture.md", file=sys.stderr)
        return 1
    if options.write:
        counts = {module: len(lines) for module, lines in now.items()}
        _COUNTS.write_text(f"{json.dumps(counts, indent=1)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
