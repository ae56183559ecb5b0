"""The examples of docs/api.md are executed as they are written, against a server with such rows.

A shell runs each command; curl alone learns which port stands for the documented one. Status,
headers and body must have the documented form.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from livemart.land.group_commit import GroupCommit
from livemart.land.ingested_keys import IngestedKeys
from livemart.serve import server as server_module
from livemart.serve.http.problems import PROBLEMS
from livemart.serve.ingest.endpoint import Intake, by_names
from livemart.serve.openapi import operations_of
from livemart.settings import Settings
from tests.deliveries import source
from tests.serve.apps import TAKES_RECORDS, document, make_settings, server
from tests.serve.documented_examples import (
    Example,
    differences,
    event_differences,
    read_dotted,
    read_events,
    read_examples,
    read_json_blocks,
    with_values,
)
from tests.serve.letters.stored_letters import letter, store_letters
from tests.store.stores import NOON, Order, fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
RESTAURANTS = {"r17": ("Taverna Azul", "Europe/Lisbon", "EUR")}
ORDERS = [replace(it, restaurant_id="r17") for it in make_orders() if it.restaurant_id == "r1"]
LATE = Order("late", "r17", "c1", NOON - timedelta(minutes=1), (("d3", 5),))
# A token that was just made, on a slow machine.
_KNOWN_WITHIN_S = 30.0
# Sealed texts and ids of tokens: a later example sends back what an earlier one has printed.
PRINTED = re.compile(r"\b(?:[0-9a-f]{12}|[A-Za-z0-9_-]{40,})(?![A-Za-z0-9_-])")


@dataclass(slots=True)
class Console:
    """A shell that keeps its variables, in the folder of a project with a server over it."""

    folder: Path
    port: int
    variables: dict[str, str] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    snapshot_id: int = 4210

    def __post_init__(self) -> None:
        (self.folder / ".curlrc").write_text(
            f'connect-to = "127.0.0.1:8000:127.0.0.1:{self.port}"\n'
            f'dump-header = "{self.folder}/headers"\nmax-time = {PATIENCE_S}\n'
        )
        (self.folder / "dbt_project.yml").touch()
        lines = [json.dumps({"id": number}) for number in range(120)]
        (self.folder / "orders.jsonl").write_text("\n".join(lines))

    def publish(self) -> None:
        """Publish the next snapshot: one order comes, and goes with the next but one."""
        self.snapshot_id += 1
        orders = [*ORDERS, LATE] if self.snapshot_id % 2 == 0 else ORDERS
        tables = reference_tables(orders, restaurants=RESTAURANTS)
        url = str(make_settings(self.folder).store_url)
        fill_store(url, tables, snapshot_id=self.snapshot_id, epoch="9f2c51d0")

    def start(self, command: str) -> subprocess.Popen[str]:
        """Begin a command; its shell keeps the variables that it sets."""
        environment = {
            **os.environ,
            **self.variables,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CURL_HOME": str(self.folder),
        }
        return subprocess.Popen(
            ["bash", "-c", f"set -a\n{command}\ncode=$?\nenv -0 > variables\nexit $code"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        """Return what a command prints; it must not fail."""
        process = self.start(command)
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, command
        variables = (self.folder / "variables").read_text().split("\0")
        self.variables = {
            name: text
            for name, _, text in (line.partition("=") for line in variables)
            if name in ("TOKEN", "ADMIN")
        }
        return output

    def answer(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the newest answer to curl."""
        head, *lines = (self.folder / "headers").read_text().strip().splitlines()
        headers = _headers_of(lines)
        return int(head.split()[1]), headers

    def try_example(self, example: Example) -> list[str]:
        """Execute an example; return where it differs from what is documented."""
        command = with_values(example.command, self.printed)
        if "curl" in command and "/stream" in command:
            return self.follow(command, example.output)
        deadline = time.monotonic() + _KNOWN_WITHIN_S
        while True:
            output = self.run(command)
            # A token holds within a second or two.
            if "curl" not in command or self.answer()[0] != 401 or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.printed |= dict(
            zip(PRINTED.findall(example.output), PRINTED.findall(output), strict=False)
        )
        if "moving=true" in command:
            # The next page is of another snapshot.
            self.publish()
        if "curl" not in command:
            return _line_differences(example.output, output)
        return self.answer_differences(command, example.output, output)

    def answer_differences(self, command: str, documented: str, output: str) -> list[str]:
        status, headers = self.answer()
        wrong = [] if status == 200 else [f"status {status}: {output}"]
        form = "text/csv" if "text/csv" in command else "application/json"
        if not headers["content-type"].startswith(form):
            wrong.append(f"content-type {headers['content-type']}")
        if "--data" not in command and headers.get("cache-control") != "private, no-cache":
            wrong.append(f"cache-control {headers.get('cache-control')}")
        if not documented:
            return wrong
        if " -i " in command:
            head, _, documented = documented.partition("\n\n")
            named = _headers_of(head.splitlines()[1:])
            wrong += differences(named, {name: headers.get(name) for name in named})
            output = output.partition("\n\n")[2]
        if form == "text/csv":
            return wrong + _line_differences(documented, output)
        return wrong + differences(read_dotted(documented), json.loads(output))

    def follow(self, command: str, documented: str) -> list[str]:
        """Compare a stream, during which one more snapshot is published."""
        expected = read_events(documented, is_dotted=True)
        publications = sum(event.kind == "snapshot" for event in expected)
        process, text = self.start(command), ""
        assert process.stdout is not None
        try:
            for line in process.stdout:
                text += line
                found = read_events(text)
                marks = sum(event.kind == "snapshot" for event in found)
                if line == "\n" and marks == publications:
                    return event_differences(expected, found)
                if line == "\n" and found and found[-1].kind == "snapshot":
                    self.publish()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return [f"the stream ended: {text}"]


def _headers_of(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(": ")[::2] for line in lines)
    return {name.lower(): text for name, text in pairs}


def _line_differences(documented: str, output: str) -> list[str]:
    """Return where tables differ: the first line is the same, the others have the same fields."""
    if not documented:
        return []
    separator = "," if "," in documented.splitlines()[0] else "  "
    tables = []
    for text in (documented, output):
        lines = text.replace("\r", "").strip().splitlines()
        tables.append([[cell for cell in line.split(separator) if cell] for line in lines])
    expected, found = tables
    cells = [[cell.strip() for cell in row[0]] for row in tables]
    wrong = [] if cells[0] == cells[1] else [f"found the first line {cells[1]}"]
    return wrong + differences(expected[1:], found[1:])


@contextmanager
def console(folder: Path, patched: pytest.MonkeyPatch) -> Iterator[Console]:
    """Serve the documented restaurant, with dead letters and a source that takes records."""
    orders = source("orders", {"id": "int"}, path="orders/*.jsonl")

    @contextmanager
    def open_orders(settings: Settings) -> Iterator[Intake]:
        keys = IngestedKeys(folder / "keys", folder / "landing")
        commit = GroupCommit(folder / "landing", keys)
        yield Intake(by_names([orders]), commit)
        commit.close()

    patched.setattr(server_module, "open_intake", open_orders)
    store_letters(
        folder / "warehouse",
        [letter(number, origin=f"orders/7.jsonl:{number}") for number in range(3)],
    )
    with server(folder, every="1d") as (_, port):
        made = Console(folder, port)
        made.publish()
        yield made


# 4 s of processor time: commands start four times.
@pytest.mark.extended
def test_every_example_prints_what_the_document_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed (apt-get install curl)")
    executed, wrong = 0, {}
    with console(tmp_path, monkeypatch) as shell:
        for example in read_examples(API):
            if example.command.startswith("livemart up"):
                # The server that is here already.
                assert example.output.startswith("serving http://127.0.0.1:8000/\nno token exists")
                continue
            executed += 1
            if found := shell.try_example(example):
                wrong[f"docs/api.md:{example.line}: {example.command}"] = found
        for problem in read_json_blocks(API):
            shell.run(
                f"curl -s 'http://127.0.0.1:8000{problem['instance']}?window=2h' "
                '-H "Authorization: Bearer $ADMIN"'
            )
            assert shell.answer()[0] == problem["status"]
    assert wrong == {} and executed >= 12


@pytest.mark.parametrize(
    ("documented", "found", "place"),
    [
        ('{"a":"8243.50"}', {"a": 8243.5}, "$.a"),
        ('{"a":"8243.50"}', {"a": "many"}, "$.a"),
        ('{"a":412}', {"a": 1.5}, "$.a"),
        ('{"a":412}', {"a": None}, "$.a"),
        ('{"a":1, ...}', {"b": 1}, "$: found [] instead of ['a']"),
        ('{"a":1}', {"a": 1, "b": 2}, "$: found ['a', 'b']"),
        ('{"a":[{"b":1}, ...]}', {"a": []}, "$.a: found no items"),
        ('{"a":[{"b":1}]}', {"a": [{"b": 1}, {"b": "x"}]}, "$.a[].b"),
        ('{"at":"2026-03-02T14:35:00Z"}', {"at": "2026-03-02 14:35"}, "$.at"),
    ],
)
def test_an_example_of_another_form_is_found(documented: str, found: object, place: str) -> None:
    (wrong,) = differences(read_dotted(documented), found)

    assert wrong.startswith(place)


def test_a_stream_of_another_form_is_found() -> None:
    documented = read_events(
        "event: reset\ndata: {...}\n\nid: 1\nevent: change\ndata: {...}", is_dotted=True
    )

    def found(*events: str) -> list[str]:
        return event_differences(documented, read_events("".join(f"{it}\n\n" for it in events)))

    reset, change = "event: reset\ndata: {}", "id: 2\nevent: change\ndata: {}"
    assert found(reset, change, change) == []
    assert found(reset) == ["no event change where one is documented"]
    assert found(change)[0] == "no event reset where one is documented"
    assert found(f"id: 7\n{reset}", change) == ["reset: found an id"]


def test_the_paths_of_the_document_are_those_of_the_server() -> None:
    """With exactly the parameters that each of them reads."""
    documented = {}
    for path, query in re.findall(r"^\| `GET (/[^?`]*)(?:\?([^`]*))?` \|", API, re.MULTILINE):
        names = {it.partition("=")[0] for it in query.replace("\\|", "|").split("&") if it}
        documented[re.sub(r"\{\w+\}", "{}", path)] = names
    described = {
        re.sub(r"\{\w+\}", "{}", path): {
            "COLUMN" if parameter["name"] == "conditions" else parameter["name"]
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query"
        }
        for path, method, operation in operations_of(document(TAKES_RECORDS))
        if method == "get"
    }

    assert documented == described


def test_the_table_of_errors_has_every_code_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}[^|]*) \| (`.*) \|$", API, re.MULTILINE)
    documented = {
        code: {int(status) for status in re.findall(r"\d{3}", statuses)}
        for statuses, codes in rows
        for code in re.findall(r"`([A-Z_]+)`", codes)
    }
    known = {code: status for code, (status, _) in PROBLEMS.items()}

    assert set(documented) == set(known)
    assert {code for code, status in known.items() if status not in documented[code]} == set()
