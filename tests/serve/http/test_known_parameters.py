"""A parameter that nothing reads is refused: it would look like an answer to another question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.apps import Site, site
from tests.store.stores import fill_store, reference_tables

ROWS = "/v1/models/order_arrivals"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("parameters")
    with site(folder, page=True) as here:
        fill_store(here.url, reference_tables())
        here.until(lambda: here.shows(1))
        yield here


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (f"{ROWS}?limit=5", (200, None)),
        # The same name, written otherwise.
        (f"{ROWS}?l%69mit=5", (200, None)),
        (f"{ROWS}?limits=5", (400, "PARAMETER_UNKNOWN")),
        (f"{ROWS}?Limit=5", (400, "PARAMETER_UNKNOWN")),
        (f"{ROWS}?limit=5&limit=6", (400, "PARAMETER_REPEATED")),
        (f"{ROWS}?limit=5&l%69mit=5", (400, "PARAMETER_REPEATED")),
        # A list, which may come several times.
        (f"{ROWS}?key=restaurant_id:r1&key=arrival_id:a", (200, None)),
        # Each condition on a column is one of many, but a column of another model is none.
        (f"{ROWS}?lateness_seconds=gte.0&lateness_seconds=lt.60", (200, None)),
        (f"{ROWS}?dish_rank=eq.1", (400, "PARAMETER_UNKNOWN")),
        (f"{ROWS}?from=2026-03-02T12:00:00Z&until=x", (400, "PARAMETER_UNKNOWN")),
        (f"{ROWS}/stream?since=0", (400, "PARAMETER_UNKNOWN")),
        ("/v1/models?x", (400, "PARAMETER_UNKNOWN")),
        ("/v1/restaurants?tenant=r1", (400, "PARAMETER_UNKNOWN")),
        ("/v1/restaurants/r1/metrics?window=1h&window=24h", (400, "PARAMETER_REPEATED")),
        ("/v1/restaurants/r1/stream?window=1h&from=0", (400, "PARAMETER_UNKNOWN")),
        ("/v1/dead-letters?sources=x", (400, "PARAMETER_UNKNOWN")),
        ("/readyz?verbose=1", (400, "PARAMETER_UNKNOWN")),
        ("/healthz?", (200, None)),
        # A page is opened from links of others, who add what they like.
        ("/models?utm_source=mail", (200, None)),
    ],
)
def test_an_unknown_or_repeated_parameter_is_refused_with_400(
    shop: Site, path: str, answer: tuple[int, str | None]
) -> None:
    response = shop.client.get(path)
    is_problem = response.headers["content-type"] == "application/problem+json"

    assert (response.status_code, response.json()["code"] if is_problem else None) == answer


def test_a_refusal_names_the_parameter_those_known_and_the_nearest(shop: Site) -> None:
    detail = shop.client.get(f"{ROWS}?limits=5").json()["detail"]

    assert detail == (
        "limits: no such parameter, did you mean limit?; known: "
        "arrival_id, order_id, restaurant_id, order_status, batch_id, lateness_seconds, "
        "transit_seconds, is_deletion, is_late, ordered_at, updated_at, landed_at, "
        "pane_started_at, changed_pane_started_at, "
        "key, from, to, time_column, select, order, limit, after, format, moving"
    )
    assert shop.client.get("/v1/models?x=1").json()["detail"] == (
        "x: no such parameter; known: none"
    )


def test_who_has_no_token_learns_no_parameters(shop: Site) -> None:
    shop.bearer("r1")
    shop.client.get("/readyz")

    shop.until(lambda: shop.client.get(f"{ROWS}?limits=5").status_code == 401)
