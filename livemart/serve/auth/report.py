"""Shows tokens on the command line, as lines or as JSON values.

Used by the commands `token`. A token's text is shown once, its hash never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from livemart.errors import ConfigError, StateError
from livemart.intervals import parse_interval
from livemart.project.profiles import ways_to_a_project, why_no_project
from livemart.serve.auth.tokens import Token, TokenStore
from livemart.settings import Settings
from livemart.state.snapshots import SnapshotLog
from livemart.store.connections import open_engine, shown_url
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView

_WAITS = "the store is being filled; the token waits for its turn (Ctrl-C gives up)"
_HEADER = ("id", "name", "scope", "created", "expires", "state")


@contextmanager
def open_tokens(
    settings: Settings, *, say: Callable[[str], None] = lambda _: None
) -> Iterator[TokenStore]:
    """Yield the tokens of the store; if a token has to wait, `say` gets the reason.

    Raises:
        ConfigError: STORE_NOT_SET.
    """
    if settings.store_url is None:
        raise ConfigError(
            "STORE_NOT_SET",
            "store: found 'none': no store keeps tokens",
            hint="leave out `store`, or name a SQLite file or a PostgreSQL database",
        )
    with closing(TokenStore(settings.store_url, waits=lambda: say(_WAITS))) as tokens:
        yield tokens


def check_place(settings: Settings, tenants: Sequence[str] = (), *, unseen: bool = False) -> str:
    """Return where a new token is kept, in words; a store is made only where there is a project.

    Args:
        tenants: whose rows the token is to read.
        unseen: take tenants that no served row belongs to.

    Raises:
        StateError: NOTHING_PUBLISHED, if the store holds no snapshot and tenants are named, or
            neither does the warehouse and there is no project; TENANT_UNKNOWN.
        PublishError: STORE_UNREACHABLE.
    """
    if settings.store_url is None:
        return "nowhere"
    engine = open_engine(settings.store_url)
    place = shown_url(engine)
    with closing(StoreReader(engine)) as reader:
        if reader.newest() is not None:
            with reader.snapshot() as view:
                unknown = [] if unseen else [it for it in tenants if not _has_rows(view, it)]
            if unknown:
                raise StateError(
                    "TENANT_UNKNOWN",
                    f"{place}: no served row belongs to {', '.join(unknown)}",
                    hint="write the tenant as it is in the column `tenant_column`, or add "
                    "--unseen if its rows will arrive later",
                )
            return place
    missing = why_no_project(settings.project_dir)
    if missing and SnapshotLog(settings.warehouse).newest() is None:
        raise StateError(
            "NOTHING_PUBLISHED",
            f"{place}: nothing was ever published there, and {settings.project_dir} holds no "
            f"project: {missing}",
            hint=f"{ways_to_a_project(settings.project_dir)}; or name --warehouse or --store",
        )
    if tenants and not unseen:
        raise StateError(
            "NOTHING_PUBLISHED",
            f"{place}: nothing is published there yet, so no row says which tenants exist; found "
            f"--tenant {', '.join(tenants)}",
            hint="run `livemart build` first, or add --unseen if its rows will arrive later",
        )
    return f"{place}, where nothing is published yet"


def _has_rows(view: SnapshotView, tenant: str) -> bool:
    """Return True if a served row is of a tenant."""
    return any(
        view.rows(name, tenants=frozenset({tenant}), limit=1)
        for name, served in view.models().items()
        if served.tenant_column is not None
    )


def lifetime_of(text: str) -> timedelta | None:
    """Return how long a token lasts; None for ever.

    Raises:
        ConfigError: WRONG_SETTING.
    """
    if text.strip().lower() == "never":
        return None
    try:
        return parse_interval(text)
    except ValueError as error:
        raise ConfigError(
            "WRONG_SETTING", f"--expires: found {text!r}", hint=f"{error}; or `never`"
        ) from None


def render_created(token: Token) -> str:
    """Return the text beside a new token."""
    until = (
        "for ever" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    )
    description = f"token {token.token_id} ({token.name}) {_right(token)}, {until}"
    return f"{description}; it is not shown again"


def describe_tokens(tokens: Sequence[Token], now: datetime | None = None) -> list[dict[str, Any]]:
    """Return the tokens as JSON values, without their hashes; times in ISO 8601, UTC."""
    now = now or datetime.now(UTC)
    return [
        {
            "token_id": token.token_id,
            "name": token.name,
            "scope": token.scope,
            "tenants": sorted(token.tenants),
            "sources": sorted(token.sources),
            "created_at": token.created_at.isoformat(),
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
            "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
            "state": token.state(now),
        }
        for token in tokens
    ]


def render_tokens(report: Sequence[Mapping[str, Any]]) -> str:
    """Return the tokens as lines for a terminal."""
    if not report:
        return "no token exists yet\n  next: run `token create`"
    rows = [
        _HEADER,
        *(
            (
                token["token_id"],
                token["name"],
                _shown_scope(token),
                token["created_at"][:16],
                (token["expires_at"] or "never")[:16],
                token["state"],
            )
            for token in report
        ),
    ]
    widths = [max(len(row[index]) for row in rows) for index in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _shown_scope(token: Mapping[str, Any]) -> str:
    if token["sources"]:
        return ", ".join(f"ingest:{source}" for source in token["sources"])
    return ", ".join(token["tenants"]) or "everything"


def _right(token: Token) -> str:
    if token.sources:
        return f"sends records of {', '.join(sorted(token.sources))}"
    return f"reads {', '.join(sorted(token.tenants)) or 'everything'}"
