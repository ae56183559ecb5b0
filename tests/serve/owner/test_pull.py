"""A dashboard's reads: however the query is written, the answer is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.apps import Site, compared, site
from tests.store.stores import fill_store, reference_tables

CALLERS = ("admin", "own", "foreign", "nobody")
KINDS = ("metrics", "top-dishes", "trend")


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Site, dict[str, dict[str, str]]]]:
    folder: Path = tmp_path_factory.mktemp("pull")
    with site(folder) as here:
        fill_store(here.url, reference_tables())
        here.until(lambda: here.shows(1))
        headers = {
            "admin": here.bearer(),
            "own": here.bearer("r1"),
            "foreign": here.bearer("r2"),
            "nobody": {},
            "unknown token": {"Authorization": f"Bearer lm_{'0' * 12}_{'a' * 43}"},
        }
        yield here, headers


@pytest.mark.parametrize(
    "caller", [*CALLERS, pytest.param("unknown token", marks=pytest.mark.extended)]
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restaurant", ["r1", "r9", "x" * 200, "x" * 201])
def test_a_query_written_otherwise_is_answered_alike(
    shop: tuple[Site, dict[str, dict[str, str]]], restaurant: str, kind: str, caller: str
) -> None:
    here, headers = shop
    path = f"/v1/restaurants/{restaurant}/{kind}"

    for window in ("1h", "24h", "168h", "2h", ""):
        plain, other = (
            here.client.get(f"{path}?{name}={window}", headers=headers[caller])
            for name in ("window", "w%69ndow")
        )
        assert plain.status_code == other.status_code
        assert plain.content == other.content
        assert compared(plain.headers) == compared(other.headers)


def test_the_window_is_a_day_if_none_is_named(
    shop: tuple[Site, dict[str, dict[str, str]]],
) -> None:
    here, headers = shop

    for kind in KINDS:
        path = f"/v1/restaurants/r1/{kind}"
        named = here.client.get(f"{path}?window=24h", headers=headers["own"])
        unnamed = here.client.get(path, headers=headers["own"])
        known = here.client.get(
            f"{path}?window=24h", headers={**headers["own"], "If-None-Match": named.headers["etag"]}
        )
        assert (named.status_code, unnamed.content) == (200, named.content)
        assert (known.status_code, known.content) == (304, b"")
