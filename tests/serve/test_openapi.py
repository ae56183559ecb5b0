"""The OpenAPI document is whole and says by name what a client may call and get."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from livemart.serve.openapi import operations_of
from tests.serve.apps import TAKES_RECORDS, document


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The document of a server that takes records, too."""
    return document(TAKES_RECORDS)


def test_no_reference_of_the_document_leads_nowhere(described: Mapping[str, Any]) -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))

    assert named - set(described["components"]["schemas"]) == set()
    assert {"LateCorrections", "Problem"} <= named
    assert not any("$defs" in shape for shape in described["components"]["schemas"].values())


def test_each_operation_has_a_name_that_a_client_can_call(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations_of(described)]

    assert len(set(names)) == len(names) == 13
    for name in names:
        # FastAPI's own names hold the path: rows_v1_models_name_get.
        assert re.fullmatch(r"(list|pull|follow|check|send)_[a-z_]+", name) and "v1" not in name


def test_each_operation_describes_its_problems_and_no_foreign_ones(
    described: dict[str, Any],
) -> None:
    for path, method, operation in operations_of(described):
        answers = operation["responses"]
        problems = {status: it for status, it in answers.items() if int(status) >= 400}

        assert {"400", "429", "500", "503"} <= set(problems), path
        for answer in problems.values():
            (form,) = answer["content"]
            assert form == "application/problem+json", (path, method)
        assert ("410" in problems) == (operation["operationId"] == "pull_rows")
        assert ("415" in problems) == (operation["operationId"] == "send_records")


def test_no_parameter_is_null_and_those_of_few_values_are_named(
    described: dict[str, Any],
) -> None:
    for path, _, operation in operations_of(described):
        for parameter in operation.get("parameters", ()):
            assert "null" not in json.dumps(parameter["schema"]), (path, parameter["name"])
            assert "enum" not in parameter["schema"], (path, parameter["name"])


def test_records_are_sent_with_a_token_alone(described: dict[str, Any]) -> None:
    ways = {
        operation["operationId"]: operation.get("security")
        for _, _, operation in operations_of(described)
    }

    assert ways["send_records"] == [{"token": []}]
    assert ways["pull_rows"] == [{"token": []}, {"session": []}]
    assert ways["check_alive"] is ways["check_ready"] is None
