"""Clients that two generators make of the OpenAPI document, used against a server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from livemart.serve.auth.tokens import TokenStore
from livemart.serve.openapi import operations_of
from tests.serve.apps import TAKES_RECORDS, bearer, document, make_settings, server
from tests.serve.letters.stored_letters import letter, store_letters
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

# A body of lines is bytes to the generator, and its `ruff` need not be on the path.
CONFIG = {
    "package_name_override": "livemart_client",
    "content_type_overrides": {
        "application/x-ndjson": "application/octet-stream",
        "text/plain": "application/octet-stream",
    },
    "post_hooks": [],
}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The document of a server that takes records, too."""
    return document(TAKES_RECORDS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server over a filled store, and an admin's token."""
    folder = tmp_path_factory.mktemp("served")
    url = str(make_settings(folder).store_url)
    fill_store(url, reference_tables())
    store_letters(folder / "warehouse", [letter(number) for number in range(3)])
    tokens = TokenStore(url)
    token, _ = tokens.create("client", is_admin=True)
    tokens.close()
    with server(folder, every="1d") as (host, port):
        yield f"http://{host}:{port}", token


def generate(folder: Path, described: Mapping[str, Any], *command: str) -> None:
    """Write the document into a folder, and run a generator there; a warning is an error."""
    (folder / "openapi.json").write_text(json.dumps(described), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0 and "arning" not in done.stdout + done.stderr, (
        done.stdout + done.stderr
    )


def imported(name: str, folder: Path, patched: pytest.MonkeyPatch) -> ModuleType:
    patched.syspath_prepend(folder)
    return import_module(name)


# 1 s of processor time for the generator.
@pytest.mark.extended
def test_a_client_by_openapi_python_client_reads_what_the_server_says(
    tmp_path: Path,
    described: dict[str, Any],
    served: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its functions are named after the operations, and return the named shapes."""
    (tmp_path / "config.yml").write_text(json.dumps(CONFIG), encoding="utf-8")
    options = ("--config", "config.yml", "--meta", "none", "--output-path", "livemart_client")
    generate(
        tmp_path,
        described,
        *("openapi_python_client", "generate", "--path", "openapi.json", "--fail-on-warning"),
        *options,
    )
    client_module = imported("livemart_client", tmp_path, monkeypatch)
    shapes = import_module("livemart_client.models")
    address, token = served
    client = client_module.AuthenticatedClient(base_url=address, token=token, timeout=PATIENCE_S)

    def call(operation: str, *path: str, **query: object) -> Any:
        tags = {it["operationId"]: it["tags"][0] for _, _, it in operations_of(described)}
        folder = tags[operation].replace(" ", "_")
        module = import_module(f"livemart_client.api.{folder}.{operation}")
        return module.sync(*path, client=client, **query)

    of_window = shapes.PullRowsConditions.from_dict({"window_hours": "in.(24,168)"})
    asked = {"conditions": of_window, "select": "restaurant_id,sales_amount", "limit": 5}
    pages = [call("pull_rows", "restaurant_top_dishes", **asked)]
    while pages[-1].next_ is not None:
        pages.append(call("pull_rows", "restaurant_top_dishes", after=pages[-1].next_, **asked))
    whole = call("pull_rows", "restaurant_top_dishes", **{**asked, "limit": 1_000})
    metrics = call("pull_metrics", "r1", window=shapes.WindowLength.HOUR)
    unknown = call("pull_rows", "no_such_model")
    letters = call("pull_dead_letters", reason=shapes.LetterReason.TYPE_MISMATCH)

    assert [row.to_dict() for page in pages for row in page.rows] == [
        row.to_dict() for row in whole.rows
    ]
    assert len(pages) == 4 and len(whole.rows) == 18
    assert {type(row) for row in whole.rows} == {shapes.ModelRow}
    assert isinstance(metrics, shapes.Metrics)
    assert metrics.window.state is shapes.WindowState.PROVISIONAL
    assert isinstance(unknown, shapes.Problem) and unknown.code == "MODEL_UNKNOWN"
    assert isinstance(letters, shapes.DeadLetters) and letters.total == 3
    assert isinstance(call("list_models"), shapes.Models)
    assert call("check_ready").status == "ready"
    state = shapes.State.__init__.__annotations__
    assert "LateCorrections" in state["late_corrections"]


# 1 s of processor time for the generator.
@pytest.mark.extended
def test_the_classes_of_datamodel_code_generator_take_every_body(
    tmp_path: Path,
    described: dict[str, Any],
    served: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ("--output", "livemart_shapes.py", "--output-model-type", "pydantic_v2.BaseModel")
    generate(
        tmp_path,
        described,
        *("datamodel_code_generator", "--input", "openapi.json", "--input-file-type", "openapi"),
        *("--strict-refs", "--formatters", "builtin", *options),
    )
    shapes = imported("livemart_shapes", tmp_path, monkeypatch)
    address, token = served
    bodies = {
        "Restaurants": "/v1/restaurants",
        "Metrics": "/v1/restaurants/r1/metrics",
        "TopDishes": "/v1/restaurants/r1/top-dishes?window=1h",
        "Trend": "/v1/restaurants/r1/trend?window=168h",
        "Models": "/v1/models",
        "Rows": "/v1/models/order_arrivals?limit=3",
        "DeadLetters": "/v1/dead-letters",
        "Ready": "/readyz",
        "Alive": "/healthz",
        "Problem": "/v1/models/no_such_model",
    }
    # One class for each named shape: none is numbered since another took its name.
    assert [name for name in vars(shapes) if re.fullmatch(r"[A-Z]\w*\d", name)] == []
    for name, path in bodies.items():
        answer = httpx2.get(f"{address}{path}", headers=bearer(token), timeout=PATIENCE_S)
        body = getattr(shapes, name).model_validate_json(answer.text, strict=False)

        sent = answer.json()
        assert set(body.model_dump(by_alias=True, exclude_unset=True)) == set(sent), path
