"""Keeps small state files whole: a reader sees the old content or the new one.

Used for manifests, the epoch and views, whatever happens in the middle of a write.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from livemart.errors import StateError
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

_State = TypeVar("_State")

_NUMBERED = re.compile(r"(\d+)\.json")


def replace_file(path: StoragePlace, content: str | bytes) -> None:
    """Replace a file: the new content is on disk when this returns, and until then the old one."""
    data = content.encode() if isinstance(content, str) else content
    open_storage(path.parent).put(path.name, data)


def read_file(path: StoragePlace) -> bytes:
    """Return the content of a file. Raises FileNotFoundError."""
    return open_storage(path.parent).get(path.name)


def write_state_file(path: StoragePlace, state: object) -> None:
    """Write a dataclass, or a mapping, as a file of JSON."""
    # Also names of files that are no UTF-8.
    replace_file(path, json.dumps(to_jsonable_python(state), indent=1))


def read_state_file(path: StoragePlace, kind: type[_State]) -> _State | None:
    """Return the value of a state file; None if there is no file, or one of another content.

    Raises:
        OSError: there is one, and it cannot be read now.
    """
    try:
        return _read(path, kind)
    except (FileNotFoundError, ValueError):
        return None


def look_at_state_file(path: StoragePlace, kind: type[_State]) -> _State | None:
    """Return the value of a state file; None also if it cannot be read now."""
    with suppress(OSError):
        return read_state_file(path, kind)
    return None


def require_state_file(path: StoragePlace, kind: type[_State], *, hint: str) -> _State:
    """Return the value of a state file that must be whole.

    Args:
        path: of the file.
        kind: what it holds.
        hint: what to do if it is torn.

    Raises:
        FileNotFoundError: there is none.
        StateError: MANIFEST_TORN.
    """
    try:
        return _read(path, kind)
    except ValidationError as error:
        faults = (": ".join((*map(str, fault["loc"]), fault["msg"])) for fault in error.errors())
        raise StateError("MANIFEST_TORN", f"{path}: {'; '.join(faults)}", hint=hint) from error
    except ValueError as error:
        raise StateError("MANIFEST_TORN", f"{path}: {error}", hint=hint) from error


def remove_state_file(path: StoragePlace) -> None:
    """Remove a state file, if it exists."""
    open_storage(path.parent).delete([path.name])


def _read(path: StoragePlace, kind: type[_State]) -> _State:
    form: Any = kind
    state: _State = _form_of(form).validate_python(json.loads(read_file(path)))
    return state


@cache
def _form_of(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def sync(path: Path) -> None:
    """Wait until a file, or the names of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def numbers_of(folder: StoragePlace) -> list[int]:
    """Return the numbers of the files `<number>.json` in a folder, the highest first."""
    names = map(_NUMBERED.fullmatch, open_storage(folder).names())
    return sorted((int(name[1]) for name in names if name is not None), reverse=True)
