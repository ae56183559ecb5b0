"""A report shows what a token may do and never what would let somebody in."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.serve.auth.report import (
    describe_tokens,
    lifetime_of,
    open_tokens,
    render_created,
    render_tokens,
)
from livemart.serve.auth.tokens import Token
from tests.serve.apps import make_settings
from tests.store.stores import NOON

HASH = "f" * 64
ADMIN = Token("a" * 12, HASH, "boss", "admin", frozenset(), NOON, None, None)
TENANT = Token(
    *("b" * 12, HASH, "till", "tenants", frozenset({"r2", "r1"})),
    *(NOON, NOON + timedelta(days=1), None),
)
SENDER = Token(
    *("c" * 12, HASH, "pos", "ingest", frozenset(), NOON, None, NOON, frozenset({"orders"}))
)


def test_each_token_is_a_line_of_what_it_may_do_and_whether_it_still_may() -> None:
    report = describe_tokens([ADMIN, TENANT, SENDER], NOON + timedelta(days=2))

    assert [it["state"] for it in report] == ["valid", "expired", "revoked"]
    header, *lines = render_tokens(report).splitlines()
    assert header.split() == ["id", "name", "scope", "created", "expires", "state"]
    assert [line.split()[0] for line in lines] == ["a" * 12, "b" * 12, "c" * 12]
    assert "everything" in lines[0] and "r1, r2" in lines[1] and "ingest:orders" in lines[2]
    # The columns are aligned.
    assert len({line.index("2026-03-02T12:00") for line in lines}) == 1
    assert HASH not in str(report) + "".join(lines)


def test_without_a_token_the_next_step_is_said() -> None:
    assert render_tokens([]).splitlines()[1] == "  next: run `token create`"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (ADMIN, "(boss) reads everything, for ever;"),
        (TENANT, "(till) reads r1, r2, until 2026-03-03 12:00 UTC;"),
        (SENDER, "(pos) sends records of orders, for ever;"),
    ],
)
def test_a_new_token_says_what_it_is_for_and_how_long(token: Token, text: str) -> None:
    assert text in render_created(token)


def test_a_lifetime_is_an_interval_or_never() -> None:
    assert lifetime_of("90d") == timedelta(days=90) and lifetime_of(" Never ") is None
    with pytest.raises(ConfigError, match="--expires: found 'soon'") as caught:
        lifetime_of("soon")
    assert caught.value.hint is not None and caught.value.hint.endswith("or `never`")


def test_without_a_store_there_is_nothing_that_keeps_tokens(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, store="none")

    with pytest.raises(ConfigError, match="STORE_NOT_SET"), open_tokens(settings):
        pass
