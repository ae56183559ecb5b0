"""Gets the schemas by which messages were written: from a schema registry, or from a folder.

Used by the reader of Avro messages. A schema never changes under its number, so each is fetched
once in a process.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any

from livemart.land.records.exact_values import MalformedError

_ANSWER_S = 15.0
_KEPT = 1_024
_AVRO = "AVRO"


class RegistryAwayError(Exception):
    """A registry that does not answer, or not with what was asked; it may later."""


@lru_cache(maxsize=_KEPT)
def fetch_schema(registry: str, number: int) -> Any:
    """Return a schema as fastavro reads by it.

    Args:
        registry: its address, asked as `<address>/schemas/ids/<number>`; or a folder, which holds
            `<number>.avsc`.
        number: of the schema.

    Raises:
        MalformedError: the registry has no schema of that number, or it is not of Avro.
        RegistryAwayError: it cannot be asked; a folder does not hold it.
    """
    import fastavro

    is_remote = registry.startswith(("http://", "https://"))
    text = _ask(registry, number) if is_remote else _read(registry, number)
    try:
        return fastavro.parse_schema(json.loads(text))
    # fastavro raises whatever a wrong schema leads to.
    except Exception as error:
        raise RegistryAwayError(
            f"{registry}: schema {number} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _ask(registry: str, number: int) -> str:
    address = f"{registry.rstrip('/')}/schemas/ids/{number}"
    try:
        with urllib.request.urlopen(address, timeout=_ANSWER_S) as answer:
            content = json.loads(answer.read())
            kind, text = content.get("schemaType", _AVRO), str(content["schema"])
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise MalformedError(f"{registry} has no schema {number}") from error
        raise RegistryAwayError(f"{address}: {error}") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RegistryAwayError(f"{address}: {type(error).__name__}: {error}") from error
    if kind != _AVRO:
        raise MalformedError(f"schema {number} is of type {kind}")
    if content.get("references"):
        raise RegistryAwayError(f"{address}: it refers to other schemas, which are not fetched")
    return text


def _read(folder: str, number: int) -> str:
    path = Path(folder) / f"{number}.avsc"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RegistryAwayError(f"{path}: {type(error).__name__}: {error}") from error
