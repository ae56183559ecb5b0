"""Gets the schemas by which messages were written: from a schema registry, or from a folder.

Used by the readers of Avro messages. A schema never changes under its number, so each is fetched
once in a process, with the schemas that it refers to.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from livemart.land.records.exact_values import MalformedError
from livemart.land.secrets import read_secrets

_ANSWER_S = 15.0
_KEPT = 1_024
_AVRO = "AVRO"
_NOT_LET_IN = (401, 403)

# Schemas as JSON: the last is the one that is meant, those before it are what it refers to.
Definitions = tuple[str, ...]


class RegistryAwayError(Exception):
    """A registry that does not answer, or gives a wrong answer; it may be right later."""


class RegistryDeniedError(RegistryAwayError, PermissionError):
    """A registry that does not let this client in."""


@lru_cache(maxsize=_KEPT)
def fetch_definitions(
    registry: str, secrets: tuple[tuple[str, str], ...], number: int
) -> Definitions:
    """Return a schema of a registry, with those that it refers to.

    Args:
        registry: its address, asked as `<address>/schemas/ids/<number>`; or a folder, which holds
            `<number>.avsc`.
        secrets: `user` and `password`, each with the environment variable that holds it; empty for
            a registry that asks for none.
        number: of the schema.

    Raises:
        MalformedError: the registry has no schema of that number, or it is not of Avro.
        RegistryAwayError: it cannot be asked; a folder does not hold it.
    """
    if not registry.startswith(("http://", "https://")):
        return (_read(registry, number),)
    asked = _Asked(registry.rstrip("/"), dict(secrets))
    try:
        content = asked.answer(f"schemas/ids/{number}")
    except FileNotFoundError as error:
        raise MalformedError(f"{registry} has no schema {number}") from error
    if (kind := content.get("schemaType", _AVRO)) != _AVRO:
        raise MalformedError(f"schema {number} is of type {kind}")
    return tuple(dict.fromkeys([*asked.references(content, set()), str(content["schema"])]))


class _Asked:
    """A registry at an address without a slash at its end; its login is in the environment."""

    def __init__(self, address: str, secrets: Mapping[str, str]) -> None:
        self._address = address
        self._secrets = secrets

    def answer(self, path: str) -> Mapping[str, Any]:
        """Return the registry's answer; it has a `schema`.

        Raises:
            FileNotFoundError: it has none there.
            RegistryAwayError: for every other error.
        """
        address = f"{self._address}/{path}"
        request = urllib.request.Request(address)
        try:
            if self._secrets:
                held = read_secrets(self._secrets)
                login = base64.b64encode(f"{held['user']}:{held['password']}".encode()).decode()
                # To where it redirects no login is sent.
                request.add_unredirected_header("Authorization", f"Basic {login}")
            with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
                content = json.loads(answer.read())
                str(content["schema"])
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise FileNotFoundError(address) from error
            is_denied = error.code in _NOT_LET_IN
            raise (RegistryDeniedError if is_denied else RegistryAwayError)(
                f"{address}: {error}"
            ) from error
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise RegistryAwayError(f"{address}: {type(error).__name__}: {error}") from error
        return content  # type: ignore[no-any-return]

    def references(self, content: Mapping[str, Any], seen: set[tuple[str, str]]) -> Iterator[str]:
        """Yield the schemas that a schema refers to, each behind those that it refers to itself."""
        for reference in content.get("references") or ():
            place = str(reference["subject"]), str(reference["version"])
            if place in seen:
                continue
            seen.add(place)
            subject, version = (quote(part, safe="") for part in place)
            try:
                inner = self.answer(f"subjects/{subject}/versions/{version}")
            except FileNotFoundError as error:
                raise RegistryAwayError(
                    f"{error}: it does not exist, but a schema refers to it"
                ) from error
            yield from self.references(inner, seen)
            yield str(inner["schema"])


def _read(folder: str, number: int) -> str:
    path = Path(folder) / f"{number}.avsc"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RegistryAwayError(f"{path}: {type(error).__name__}: {error}") from error
