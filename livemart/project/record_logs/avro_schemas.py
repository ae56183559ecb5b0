"""Reads how messages of Avro are written: by the schema of a file, or by those of a registry.

Used by the reader of sources of record logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from livemart.project.record_logs.avro_types import RefusedSchemaError, parse_schemas

SCHEMA_KEYS = ("avro_schema", "schema_registry")
SECRETS_KEY = "registry_secrets"
_LOGIN = ("user", "password")

Refuse = Callable[[str, str, str], None]


def read_avro_schemas(
    meta: Mapping[Any, Any], is_needed: bool, root: Path, refuse: Refuse
) -> tuple[str | None, str | None]:
    """Return the schema of a source's messages as JSON, or the registry that knows theirs.

    Args:
        is_needed: whether its messages are of Avro.
        root: the project's folder; files are named from there.
        refuse: is called with each mistake: under which key, the value, what should be there.
    """
    named = [key for key in SCHEMA_KEYS if meta.get(key) is not None]
    if named and not is_needed:
        refuse(
            named[0], f"found {named[0]}, but no format avro", "say `format: avro`, or leave it out"
        )
    elif is_needed and len(named) != 1:
        keys = " and ".join(named) or "no schema"
        refuse("format", keys, "name one: `avro_schema`, a file; `schema_registry`, an address")
    elif is_needed:
        value = meta[named[0]]
        if not isinstance(value, str) or not value.strip():
            refuse(named[0], f"found {value!r}", "write a text")
        elif named[0] == "avro_schema":
            return _schema_of(root / value, refuse), None
        else:
            return None, _registry(value, root, refuse)
    return None, None


def _schema_of(path: Path, refuse: Refuse) -> str | None:
    try:
        text = path.read_text(encoding="utf-8")
        parse_schemas([text])
    except RefusedSchemaError as error:
        refuse("avro_schema", f"{path}: {error}", "name a schema that sets an end to its records")
        return None
    # fastavro raises whatever a wrong schema leads to.
    except Exception as error:
        finding = f"{path}: {type(error).__name__}: {error}"
        refuse(
            "avro_schema", finding, "name a file with a schema of Avro, from the project's folder"
        )
        return None
    return text


def _registry(value: str, root: Path, refuse: Refuse) -> str | None:
    address = urlsplit(value)
    if address.scheme in ("http", "https"):
        if address.username or address.password:
            # The address is not shown: it holds a secret.
            refuse("schema_registry", "a user or password in its address", "leave both out")
            return None
        return value
    if not (root / value).is_dir():
        hint = "write an address, http://..., or a folder with files <number>.avsc"
        refuse("schema_registry", f"found {value!r}, which is no folder", hint)
        return None
    return str((root / value).resolve())


def read_registry_secrets(
    value: object, registry: str | None, refuse: Refuse
) -> tuple[tuple[str, str], ...]:
    """Return `user` and `password` of a registry, each with the environment variable that holds it.

    Args:
        value: of the key `registry_secrets`, None for nothing.
        registry: an address or a folder; None without one.
    """
    if value is None:
        return ()
    hint = "name environment variables: `{user: REGISTRY_USER, password: REGISTRY_PASSWORD}`"
    if registry is None or not urlsplit(registry).scheme:
        refuse(SECRETS_KEY, f"{SECRETS_KEY}, but no address of a schema registry", "leave it out")
    elif not isinstance(value, Mapping) or set(value) != set(_LOGIN):
        refuse(SECRETS_KEY, f"not {' and '.join(_LOGIN)}", hint)
    elif not all(isinstance(name, str) and name.isidentifier() for name in value.values()):
        # The value found is not shown: it may be the secret itself.
        refuse(SECRETS_KEY, "no name of an environment variable", hint)
    else:
        return tuple((name, value[name]) for name in _LOGIN)
    return ()
