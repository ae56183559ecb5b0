"""Keeps access tokens, as hashes, in separate tables of the serving store.

Used by the commands `token` and by the server. A token is `lm_<token_id>_<secret>`. The secret is
32 random bytes, so one SHA-256 is enough: no list of likely passwords leads to it. The id finds the
row, the secret is compared in constant time.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from livemart.errors import PublishError, StateError
from livemart.intervals import format_interval
from livemart.store.column_types import Instant, Json
from livemart.store.connections import (
    close_engine,
    is_locked,
    is_made,
    open_engine,
    reached,
    shown_url,
)

Scope = Literal["admin", "tenants", "ingest"]
_VERSION = "tokens_version"
# The lock is tried for so long before the user learns that it has to be waited for.
_TRY_FOR = timedelta(seconds=2)

_METADATA = sa.MetaData()
_TOKENS = sa.Table(
    "livemart_access_tokens",
    _METADATA,
    sa.Column("token_id", sa.String(12), primary_key=True),
    sa.Column("token_hash", sa.String(64), nullable=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("scope", sa.String(20), nullable=False),
    sa.Column("tenants", Json, nullable=False),
    sa.Column("sources", Json, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sa.Column("revoked_at", Instant),
)
_SECRETS = sa.Table(
    "livemart_secrets",
    _METADATA,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept; times are UTC.

    `tenants`: whose rows it may read; `sources`: which may be sent records with it.
    """

    token_id: str
    token_hash: str
    name: str
    scope: Scope
    tenants: frozenset[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    sources: frozenset[str] = frozenset()

    def is_valid(self, now: datetime) -> bool:
        """Return True if the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def state(self, now: datetime) -> str:
        """Return `valid`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.is_valid(now) else "expired"


@dataclass(eq=False)
class TokenStore:
    """The tables of tokens, in the store at `url`.

    They are made with the first token, and no rebuild of the served models touches them. Reading
    takes no lock and makes nothing: a server may well run before there is a store. Writing waits
    while SQLite's one lock is with a publisher, who holds it for all of a first copy.

    Args:
        url: of the store.
        now: the wall clock, UTC.
        patience: how long writing waits at most.
        waits: is called once, when it turns out that writing has to wait.
    """

    url: str = field(repr=False)
    _: KW_ONLY
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    patience: timedelta = timedelta(minutes=30)
    waits: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._reading = open_engine(self.url)

    def close(self) -> None:
        """Close all connections; one that is being read, at the end of its reading."""
        close_engine(self._reading)

    def create(
        self,
        name: str,
        *,
        tenants: Sequence[str] = (),
        sources: Sequence[str] = (),
        is_admin: bool = False,
        lasts: timedelta | None = None,
    ) -> tuple[str, Token]:
        """Make a token; its text is returned once and kept nowhere.

        Args:
            name: whom it is for, for people's eyes.
            tenants: whose rows it may read, unless it is an admin's.
            sources: to which it may send records; it then reads nothing.
            is_admin: it may read everything.
            lasts: from now until it expires; None is for ever.

        Raises:
            PublishError: STORE_BUSY, STORE_UNREACHABLE.
        """
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = self.now().replace(microsecond=0)
        token = Token(
            token_id=token_id,
            token_hash=hash_secret(secret),
            name=name,
            scope="ingest" if sources else "admin" if is_admin else "tenants",
            tenants=frozenset() if is_admin or sources else frozenset(tenants),
            sources=frozenset(sources),
            created_at=now,
            expires_at=now + lasts if lasts is not None else None,
            revoked_at=None,
        )
        with self._write() as connection:
            ids = {"tenants": sorted(token.tenants), "sources": sorted(token.sources)}
            connection.execute(sa.insert(_TOKENS).values({**asdict(token), **ids}))
        return f"lm_{token_id}_{secret}", token

    def revoke(self, token_id: str) -> Token:
        """Take a token's right away, for good; it stays in the list.

        Raises:
            StateError: TOKEN_UNKNOWN.
            PublishError: STORE_BUSY, STORE_UNREACHABLE.
        """
        with self._write() as connection:
            query = sa.select(_TOKENS).where(_TOKENS.c.token_id == token_id)
            row = connection.execute(query).one_or_none()
            if row is None:
                raise StateError(
                    "TOKEN_UNKNOWN",
                    f"token revoke: found {token_id!r}",
                    hint="give an id that `livemart token list` shows",
                )
            token = _from_row(row)
            if token.revoked_at is None:
                token = replace(token, revoked_at=self.now().replace(microsecond=0))
                connection.execute(
                    sa.update(_TOKENS)
                    .where(_TOKENS.c.token_id == token_id)
                    .values(revoked_at=token.revoked_at)
                )
        return token

    def tokens(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        query = sa.select(_TOKENS).order_by(_TOKENS.c.created_at, _TOKENS.c.token_id)
        return [_from_row(row) for row in self._read(query)]

    def version(self) -> int:
        """Return a number that rises with every change of the tokens; 0 before the first.

        Another store begins with another number.
        """
        rows = self._read(sa.select(_SECRETS.c.value).where(_SECRETS.c.name == _VERSION))
        return int(rows[0].value) if rows else 0

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """Return the rows; none if the tables are not there."""
        with reached(self._reading):
            if not is_made(self._reading):
                return []
            try:
                with self._reading.begin() as connection:
                    return connection.execute(query).all()
            except (sa.exc.OperationalError, sa.exc.ProgrammingError):
                with self._reading.connect() as connection:
                    if sa.inspect(connection).has_table(_SECRETS.name):
                        raise
                return []

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        """Open a transaction in which the tables exist, and raise the version at its end."""
        writing = open_engine(self.url, writes=True, busy_seconds=_TRY_FOR.total_seconds())
        try:
            with reached(writing), ExitStack() as stack:
                connection = self._begin(writing, stack)
                _METADATA.create_all(connection)
                # By chance: a store that takes the place of another has no number of that one.
                _insert_once(connection, _VERSION, str(secrets.randbits(48)))
                # Held until the end: two writers at once cannot get the same number.
                connection.execute(
                    sa.update(_SECRETS).where(_SECRETS.c.name == _VERSION).values(value=_RAISED)
                )
                yield connection
        finally:
            writing.dispose()

    def _begin(self, writing: sa.Engine, stack: ExitStack) -> sa.Connection:
        gives_up_at = monotonic() + self.patience.total_seconds()
        has_logged = False
        while True:
            try:
                return stack.enter_context(writing.begin())
            except sa.exc.DBAPIError as error:
                if not is_locked(error):
                    raise
                if monotonic() >= gives_up_at:
                    raise PublishError(
                        "STORE_BUSY",
                        f"{shown_url(writing)}: another process has been writing for "
                        f"{format_interval(self.patience)}",
                        hint="run the command again when the copy is done (see `status`)",
                    ) from error
            if not has_logged:
                has_logged = True
                self.waits()


_RAISED = sa.cast(sa.cast(_SECRETS.c.value, sa.BigInteger) + 1, sa.Text)


def _insert_once(connection: sa.Connection, name: str, value: str) -> None:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"name": name, "value": value}
    connection.execute(insert(_SECRETS).values(row).on_conflict_do_nothing())


def hash_secret(secret: str) -> str:
    """Return the hash that is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _from_row(row: sa.Row[Any]) -> Token:
    values = row._asdict()
    ids = {name: frozenset(values[name]) for name in ("tenants", "sources")}
    return Token(**{**values, **ids})
