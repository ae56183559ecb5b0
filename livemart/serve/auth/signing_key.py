"""Keeps the key that signs sessions and seals ids: who reads the store does not have it.

It is the setting `session_key`, or else is kept in a file that its owner alone may read. The file
is made when the first session or id needs it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from threading import Lock

import structlog
from itsdangerous import TimestampSigner

from livemart.settings import Settings
from livemart.state.places import LocalFolder

_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SessionSigner(TimestampSigner):
    """Signs a session and when it was signed, with HMAC-SHA-256 in place of the default SHA-1."""

    default_digest_method = staticmethod(hashlib.sha256)
    default_key_derivation = "hmac"

    def __init__(self, key: str) -> None:
        super().__init__(key, salt="livemart.session")


class SigningKey:
    """The key of one server. Safe to use from several threads.

    Args:
        given: the key that an operator set, if one did.
        path: where the key is kept otherwise; None keeps it in memory.
    """

    def __init__(self, given: str | None = None, path: Path | None = None) -> None:
        self._key = given
        self._path = path
        self._lock = Lock()

    @classmethod
    def of(cls, settings: Settings) -> SigningKey:
        """Return the key that the settings name; nothing is read or made yet."""
        return cls(settings.session_key, LocalFolder(settings.warehouse).session_key)

    @property
    def text(self) -> str:
        """The key, at least 32 characters; made now if there is none."""
        with self._lock:
            if self._key is None:
                self._key = self._kept()
            return self._key

    def _kept(self) -> str:
        fresh = secrets.token_urlsafe(48)
        if self._path is None:
            return fresh
        try:
            return _read(self._path) or _keep(self._path, fresh)
        except OSError as error:
            structlog.get_logger().warning(
                "session_key_not_kept",
                path=str(self._path),
                error=error.strerror,
                next="sessions and ids of changes end with this server; set LIVEMART_SESSION_KEY",
            )
            return fresh


def _read(path: Path) -> str | None:
    """Return the key; None if there is none, or if others could have read it."""
    try:
        with path.open(encoding="ascii") as file:
            is_private = not os.fstat(file.fileno()).st_mode & _OF_OTHERS
            key = file.read()
    except FileNotFoundError:
        return None
    if is_private and len(key) >= 32:
        return key
    structlog.get_logger().warning(
        "session_key_replaced",
        path=str(path),
        reason="others could read it" if not is_private else "it is too short",
        next="nothing to do; all users sign in again, and change streams begin with after=0",
    )
    path.unlink()
    return None


def _keep(path: Path, key: str) -> str:
    """Write the key, whole or not at all; return that of another server which came first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key)
    try:
        os.link(draft, path)
    except FileExistsError:
        return path.read_text(encoding="ascii")
    finally:
        draft.unlink()
    return key
