"""HEAD has the status and the headers of GET, and no body, on every path."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from tests.serve.apps import Site, compared, server, site
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

PATHS = [
    ("/v1/restaurants", 200),
    ("/v1/restaurants/r1/metrics?window=1h", 200),
    ("/v1/restaurants/r1/trend?window=168h", 200),
    ("/v1/restaurants/r9/metrics", 404),
    ("/v1/restaurants/r1/metrics?window=2h", 422),
    ("/v1/models", 200),
    ("/v1/models/restaurant_top_dishes", 200),
    ("/healthz", 200),
    ("/openapi.json", 200),
    ("/static/page.js", 200),
    ("/login", 200),
    ("/nothing", 404),
    ("/logout", 405),
]
STREAMS = ["/v1/restaurants/r1/stream", "/v1/models/restaurant_top_dishes/stream?after=0"]


def fill(one: Site) -> None:
    fill_store(one.url, reference_tables())
    one.until(lambda: one.shows(1))


def test_head_is_get_without_its_body(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        fill(one)
        for path, status in PATHS:
            whole, head = one.client.get(path), one.client.head(path)

            assert (head.status_code, head.content) == (status, b""), path
            assert compared(head.headers) == compared(whole.headers), path


def test_head_knows_what_the_caller_has(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        path = "/v1/restaurants/r1/metrics"
        etag = one.client.head(path).headers["etag"]

        again = one.client.head(path, headers={"If-None-Match": etag})

        assert (again.status_code, again.headers["etag"]) == (304, etag)


def test_head_needs_a_token_as_get_does(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        mine = one.bearer("r1")

        assert one.client.head("/v1/restaurants/r1/metrics").status_code == 401
        assert one.client.head("/v1/restaurants/r1/metrics", headers=mine).status_code == 200
        assert one.client.head("/v1/restaurants/r2/metrics", headers=mine).status_code == 404


@pytest.mark.parametrize("path", STREAMS)
def test_head_opens_no_stream(tmp_path: Path, path: str) -> None:
    with site(tmp_path) as one:
        fill(one)

        head = one.client.head(path)

        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        one.until(lambda: one.hub.clients == 0)


def test_a_connection_goes_on_after_a_head(tmp_path: Path) -> None:
    fill_store(f"sqlite:///{tmp_path}/warehouse/_livemart/serving.db", reference_tables())
    with server(tmp_path) as (host, port):
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        lengths = []
        for method in ("HEAD", "GET"):
            connection.request(method, "/v1/restaurants/r1/metrics")
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200
            lengths.append((int(answer.headers["content-length"]), len(body)))
        connection.close()

    (announced, empty), (length, whole) = lengths
    assert announced == length == whole
    assert empty == 0
