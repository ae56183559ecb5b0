"""Scripts of the origins that a setting names read the API; those of others read nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import LivemartError
from tests.serve.apps import make_settings, site
from tests.store.stores import fill_store, reference_tables

SHOP = "https://shop.example.com"
ASKS = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}


# 0.2 s.
def test_a_named_origin_may_read_with_a_token_and_no_other_origin_may(tmp_path: Path) -> None:
    with site(tmp_path, page=True, cors_origins=f"{SHOP} http://127.0.0.1:3000") as one:
        fill_store(one.url, reference_tables())
        one.until(lambda: one.shows(1))
        own = one.bearer("r1")
        named = one.client.get("/v1/models", headers={"Origin": SHOP, **own})
        refused = one.client.get("/v1/models", headers={"Origin": SHOP})
        preflight = one.client.options("/v1/models", headers={"Origin": SHOP, **ASKS})
        others = [
            one.client.options("/v1/models", headers={"Origin": origin, **ASKS})
            for origin in ("https://evil.example", "null", f"{SHOP}.evil.example", "http://shop")
        ]
        foreign = one.client.get("/v1/models", headers={"Origin": "https://evil.example", **own})
        plain = one.client.get("/v1/models", headers=own)
        page = one.client.get("/login", headers={"Origin": SHOP})

    assert (named.status_code, refused.status_code, preflight.status_code) == (200, 401, 204)
    for answer in (named, refused, preflight):
        assert answer.headers["access-control-allow-origin"] == SHOP
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    assert "Livemart-Next" in named.headers["access-control-expose-headers"]
    assert [answer.status_code for answer in others] == [405] * 4
    for answer in (*others, foreign, plain, page):
        assert "access-control-allow-origin" not in answer.headers
    for answer in (named, foreign, plain):
        # An answer without the header must not be kept for the origin that may read it.
        assert "Origin" in answer.headers["vary"] and "Cookie" in answer.headers["vary"]
    for answer in (named, preflight):
        assert "access-control-allow-credentials" not in answer.headers


# 0.1 s.
def test_a_named_origin_needs_no_token_where_and_while_no_one_does(tmp_path: Path) -> None:
    evil = "https://evil.example"
    with site(tmp_path, cors_origins=SHOP) as one:
        fill_store(one.url, reference_tables())
        one.until(lambda: one.shows(1))
        named, foreign = (
            one.client.get("/v1/models", headers={"Origin": origin}) for origin in (SHOP, evil)
        )
        renamed = one.client.get("/v1/models", headers={"Origin": SHOP, "Host": "shop.example.com"})
        one.bearer("r1")
        later = one.client.get("/v1/models", headers={"Origin": SHOP})

    assert [each.status_code for each in (named, renamed, later)] == [200, 403, 401]
    assert named.headers["access-control-allow-origin"] == SHOP
    # Its browser lets no script read it.
    assert "access-control-allow-origin" not in foreign.headers


def test_without_the_setting_no_origin_is_named(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        preflight = one.client.options("/v1/models", headers={"Origin": SHOP, **ASKS})

    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin", ["*", "null", "shop.example.com", f"{SHOP}/", f"{SHOP}/page", "HTTPS://Shop.example"]
)
def test_an_origin_is_written_as_browsers_write_it(tmp_path: Path, origin: str) -> None:
    with pytest.raises(LivemartError, match="cors-origins"):
        make_settings(tmp_path, cors_origins=origin)
