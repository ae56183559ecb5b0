"""Remembers the sessions that were signed out.

A session is a signed cookie, and a copy of it is as good as it is; so a sign-out has to be
remembered here. It is kept in a file beside the key of the sessions, for all servers that share it
and for the next start. The file has at most `_MOST_OF_TOKEN` lines of a token. Beyond that, and of
sessions that would have ended by themselves, one line is left: all of the token that began no later
are over. Nothing is forgotten, as the clock that says so may be set back.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import structlog

_MOST_OF_TOKEN = 100
_ALL = "*"


@dataclass(frozen=True, slots=True)
class SessionId:
    """Which session it is: its token, a name by chance, and when the sign-in was, in Unix seconds.

    A session that is renewed stays the same.
    """

    token_id: str
    name: str
    began: int

    def __str__(self) -> str:
        return f"{self.token_id}.{self.name}.{self.began}"

    @classmethod
    def read(cls, text: str) -> SessionId | None:
        """Return the session of this text; None if it is of none.

        >>> str(SessionId.read("3f2a91c04b7d.9c1e.1772452800"))
        '3f2a91c04b7d.9c1e.1772452800'
        >>> SessionId.read("3f2a91c04b7d")
        """
        words = text.split(".")
        if len(words) != 3 or not (words[2].isascii() and words[2].isdigit()):
            return None
        return cls(words[0], words[1], int(words[2]))


class EndedSessions:
    """The sessions that were signed out. Safe to use from several threads and processes.

    Args:
        path: the file; None, or one that cannot be written, keeps them in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()
        self._stamp: tuple[int, int, int] | None = None
        # By token and name: when the sign-in was, and until when the line is kept.
        self._ended: dict[tuple[str, str], tuple[int, int]] = {}

    def has(self, session: SessionId) -> bool:
        """Return True if the session was signed out."""
        with self._lock:
            self._read()
            began_of_all, _ = self._ended.get((session.token_id, _ALL), (-1, 0))
            is_of_all = session.began <= began_of_all
            return is_of_all or (session.token_id, session.name) in self._ended

    def add(self, session: SessionId, now: int, kept_until: int) -> None:
        """End a session, which would end by itself at `kept_until`. Unix seconds."""
        self._change(lambda: self._end(session, now, kept_until))

    def add_all(self, token_id: str, began: int) -> None:
        """End all sessions of a token that began no later than `began`. Unix seconds."""
        self._change(lambda: self._end_all(token_id, began))

    def _change(self, change: Callable[[], None]) -> None:
        with self._lock:
            try:
                with self._locked():
                    self._read()
                    change()
                    self._write()
            except OSError as error:
                change()
                structlog.get_logger().warning(
                    "sign_out_not_kept",
                    path=str(self._path),
                    error=error.strerror,
                    next="it holds until this server ends; make the folder writable",
                )

    def _end(self, session: SessionId, now: int, kept_until: int) -> None:
        lines = dict(self._ended)
        lines[session.token_id, session.name] = (session.began, kept_until)
        of_token = [key for key in lines if key[0] == session.token_id]
        many = of_token if len(of_token) > _MOST_OF_TOKEN else []
        over = [key for key, (_, until) in lines.items() if until < now]
        for token_id, name in {*many, *over}:
            if name != _ALL:
                line, whole = lines.pop((token_id, name)), (token_id, _ALL)
                lines[whole] = max(line, lines.get(whole, line))
        self._ended = lines

    def _end_all(self, token_id: str, began: int) -> None:
        last, kept_until = self._ended.get((token_id, _ALL), (began, 0))
        self._ended = self._ended | {(token_id, _ALL): (max(last, began), kept_until)}

    def _read(self) -> None:
        """Read the file if another process wrote it."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            lines = [line.split() for line in self._path.read_text(encoding="ascii").splitlines()]
        except OSError:
            # The ended sessions that are held stay.
            return
        self._ended = {(it[0], it[1]): (int(it[2]), int(it[3])) for it in lines}
        self._stamp = stamp

    def _write(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_name(f"{self._path.name}.new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            for (token_id, name), (began, kept_until) in self._ended.items():
                file.write(f"{token_id} {name} {began} {kept_until}\n")
        draft.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing meanwhile."""
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        path = self._path.with_name(f"{self._path.name}.lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
