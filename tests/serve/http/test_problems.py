"""Every error answer has the same shape, whatever part of the server made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from livemart.serve.http import schemas
from livemart.serve.http.forms import ARROW
from livemart.serve.http.problems import PROBLEMS
from livemart.serve.live import streams
from tests.ports import silent_port
from tests.serve.apps import Site, site
from tests.store.stores import fill_store, reference_tables

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"], body["status"]) == (status, code, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert body["type"] == f"https://livemart.example/errors#{code}"
    assert body["title"] == PROBLEMS[code][1]
    assert (status == 503) == ("retry-after" in answer.headers)
    schemas.Problem.model_validate(body)
    return body


def fill(one: Site) -> None:
    fill_store(one.url, reference_tables([]))
    one.until(lambda: one.shows(1))


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/nothing", 404, "NOT_FOUND"),
        ("/v1/restaurants/r9/metrics", 404, "RESTAURANT_UNKNOWN"),
        ("/v1/restaurants/r9/stream", 404, "RESTAURANT_UNKNOWN"),
        ("/v1/restaurants/r1/metrics?window=2h", 422, "WINDOW_UNKNOWN"),
        ("/v1/restaurants/r1/stream?after=x", 422, "PARAMETER_WRONG"),
        ("/v1/restaurants/r1/stream?after=99999999999999999999", 422, "PARAMETER_WRONG"),
        ("/v1/models/nothing", 404, "MODEL_UNKNOWN"),
        ("/v1/models/nothing/stream", 404, "MODEL_UNKNOWN"),
        ("/v1/models/restaurant_top_dishes?limit=0", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes?limit=10001", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes?key=dish_name:x", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes?key=window_hours:x", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes?key=window_hours", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes?from=2026-03-02", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_sales_trend?from=soon", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_sales_trend?from=1772366400", 422, "PARAMETER_WRONG"),
        (
            "/v1/models/restaurant_sales_trend?to=2026-03-02T00:00:00.0000001Z",
            422,
            "PARAMETER_WRONG",
        ),
        (
            "/v1/models/restaurant_sales_trend?to=0001-01-01T00:00:00%2B14:00",
            422,
            "PARAMETER_WRONG",
        ),
        ("/v1/models/restaurant_sales_trend?time_column=x&from=2026-03-02", 422, "PARAMETER_WRONG"),
        ("/v1/models/restaurant_top_dishes/stream?after=1.2", 400, "POSITION_REFUSED"),
    ],
)
def test_a_wrong_request_is_a_problem(tmp_path: Path, path: str, status: int, code: str) -> None:
    with site(tmp_path) as one:
        fill(one)

        body = assert_problem(one.client.get(path), status, code)

        assert body["instance"] == path.partition("?")[0]


def test_the_value_found_is_named(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        answer = one.client.get("/v1/restaurants/r1/metrics?window=<script>")

        assert answer.json()["detail"] == "window must be one of 1h, 24h, 168h; found <script>"


def test_another_method_is_refused_with_the_ones_that_are_not(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        answer = one.client.post("/v1/restaurants/r1/metrics")

        assert_problem(answer, 405, "METHOD_REFUSED")
        assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/v1/restaurants/r1/metrics", "text/html"),
        ("/v1/restaurants/r1/metrics", "application/json;q=0"),
        ("/v1/models/restaurant_top_dishes", "image/png, text/csv;q=0"),
        ("/v1/restaurants/r1/stream", "application/json"),
    ],
)
def test_a_form_that_is_not_offered_is_a_problem(tmp_path: Path, path: str, accept: str) -> None:
    with site(tmp_path) as one:
        fill(one)

        answer = one.client.get(path, headers={"Accept": accept})

        assert_problem(answer, 406, "FORM_NOT_OFFERED")


def test_a_header_that_is_no_position_is_a_problem(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        answer = one.client.get("/v1/restaurants/r1/stream", headers={"Last-Event-ID": "x"})

        assert_problem(answer, 422, "PARAMETER_WRONG")


def test_before_the_first_snapshot_there_is_nothing_yet(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        for path in ("/v1/restaurants/r1/metrics", "/v1/models", "/readyz", "/v1/models/x/stream"):
            assert_problem(one.client.get(path), 503, "NOTHING_PUBLISHED")


def test_a_store_that_is_away_is_503_and_told_once(tmp_path: Path) -> None:
    with (
        silent_port() as port,
        capture_logs() as logs,
        site(tmp_path, store=f"postgresql://u:pw@127.0.0.1:{port}/x") as one,
    ):
        one.until(lambda: one.hub.failure is not None)
        for path in ("/v1/restaurants/r1/metrics", "/v1/models", "/readyz"):
            answer = one.client.get(path)

            assert_problem(answer, 503, "STORE_UNREACHABLE")
            assert "pw" not in answer.text and "127.0.0.1" not in answer.json()["detail"]
        assert one.client.get("/healthz").status_code == 200

    assert [each["event"] for each in logs].count("store_unreachable") == 1


def test_a_fault_of_ours_says_nothing_of_itself(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        def fail() -> None:
            raise RuntimeError("a secret")

        one.client.app.add_api_route("/fault", fail)  # type: ignore[attr-defined]
        with capture_logs() as logs:
            answer = one.client.get("/fault")

        assert_problem(answer, 500, "SERVER_FAILED")
        assert "secret" not in answer.text
        assert any(each["event"] == "request_failed" for each in logs)


def test_a_large_request_is_refused(tmp_path: Path) -> None:
    with site(tmp_path) as one:

        async def take(body: dict[str, str]) -> None: ...

        one.client.app.add_api_route("/take", take, methods=["POST"])  # type: ignore[attr-defined]

        answer = one.client.post("/take", json={"x": "x" * 70_000})

        assert_problem(answer, 413, "REQUEST_TOO_LARGE")


def test_a_request_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    from starlette.exceptions import HTTPException

    with site(tmp_path) as one:

        def refuse() -> None:
            raise HTTPException(400, "inner words")

        one.client.app.add_api_route("/refuse", refuse)  # type: ignore[attr-defined]

        body = assert_problem(one.client.get("/refuse"), 400, "REQUEST_REFUSED")

        assert body["detail"] == "bad request"


def test_there_is_an_end_to_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_STREAMS", 0)
    with site(tmp_path) as one:
        fill(one)

        for path in ("/v1/restaurants/r1/stream", "/v1/models/restaurant_top_dishes/stream"):
            assert_problem(one.client.get(path), 503, "TOO_MANY_STREAMS")


@pytest.mark.parametrize("form", ["application/json", "text/csv", ARROW])
def test_every_form_says_whether_rows_were_left_out(tmp_path: Path, form: str) -> None:
    with site(tmp_path) as one:
        fill(one)

        answers = [
            one.client.get(
                f"/v1/models/restaurant_order_metrics?limit={limit}", headers={"Accept": form}
            )
            for limit in (8, 9)
        ]

    assert [answer.headers["livemart-truncated"] for answer in answers] == ["true", "false"]


def test_a_column_of_the_key_is_named_once(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        answer = one.client.get(
            "/v1/models/restaurant_order_metrics?key=window_hours:1&key=window_hours:24"
        )

        assert_problem(answer, 422, "PARAMETER_WRONG")
        assert (
            answer.json()["detail"] == "key: name window_hours once; found another: window_hours:24"
        )
