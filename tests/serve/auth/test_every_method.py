"""Every kind of token against every path and every method, by one table of rules.

A route or method that has no rule fails the first test. No token writes anything but records, and
those only by `ingest`: every other token reads. Measurements are an admin's to read, by any token
of that scope. A stream is asked by HEAD, which is judged as GET is and opens none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from livemart.land.group_commit import GroupCommit
from livemart.land.ingested_keys import IngestedKeys
from livemart.serve.ingest.endpoint import Intake, by_names
from tests.deliveries import source
from tests.serve.apps import Site, bearer, site
from tests.serve.auth.callers import REFUSED, headers_of
from tests.serve.auth.tenant_cases import DASHBOARDS
from tests.serve.auth.test_tenants import routes_of
from tests.store.stores import KEYS, fill_store, reference_tables

# Callers whose token is right: of r1 (twice), of r2, of all, and of the source `notes`.
RIGHT = ("own", "cookie", "other", "admin", "admin's cookie", "ingest")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
HTML, EVENTS = "text/html", "text/event-stream"


@dataclass(frozen=True, slots=True)
class Rule:
    """The answers of a path, by caller; `refused` is for all whose token is not right, or missing.

    `others`: by caller, where it differs from `right`.
    """

    path: str
    right: int
    others: Mapping[str, int] = field(default_factory=dict)
    refused: int = 401
    form: str = "application/json"

    def status(self, caller: str) -> int:
        return self.refused if caller in REFUSED else self.others.get(caller, self.right)


def open_to_all(path: str, status: int = 200) -> Rule:
    return Rule(path, status, refused=status, form=HTML)


def of_tenant(path: str, form: str = "application/json") -> Rule:
    """Return the rule of what is r1's: to others it is not there."""
    return Rule(path, 200, {"other": 404, "ingest": 404}, form=form)


def of_admins(path: str, status: int = 200, form: str = "application/json") -> Rule:
    return Rule(path, 404, {"admin": status, "admin's cookie": status}, form=form)


STREAM = "/v1/models/restaurant_top_dishes/stream"
RULES: dict[tuple[str, str], list[Rule]] = {
    ("GET", "/healthz"): [open_to_all("/healthz")],
    ("GET", "/readyz"): [open_to_all("/readyz")],
    ("GET", "/openapi.json"): [open_to_all("/openapi.json")],
    ("GET", "/static/{path:path}"): [
        open_to_all("/static/page.js"),
        open_to_all("/static/..%2fpage.py", 404),
    ],
    ("GET", "/login"): [open_to_all("/login")],
    # The token is in the form; no header or cookie signs a caller in.
    ("POST", "/login"): [open_to_all("/login", 401)],
    ("GET", "/metrics"): [of_admins("/metrics")],
    # Without landed records there are none, and admins get another code.
    ("GET", "/v1/dead-letters"): [of_admins("/v1/dead-letters", 404)],
    ("GET", "/dead-letters"): [of_admins("/dead-letters", 404, HTML)],
    ("GET", "/console"): [of_admins("/console", form=HTML)],
    ("GET", "/v1/restaurants"): [Rule("/v1/restaurants", 200)],
    ("GET", "/v1/models"): [Rule("/v1/models", 200)],
    ("GET", "/models"): [Rule("/models", 200, form=HTML)],
    ("GET", "/"): [Rule("/", 303, {"ingest": 404}, form=HTML)],
    ("GET", "/r/{restaurant_id}"): [of_tenant("/r/r1", HTML)],
    **{
        ("GET", f"/v1/restaurants/{{restaurant_id}}/{kind}"): [
            of_tenant(f"/v1/restaurants/r1/{kind}")
        ]
        for kind in ("metrics", "top-dishes", "trend")
    },
    ("GET", "/v1/restaurants/{restaurant_id}/stream"): [
        of_tenant("/v1/restaurants/r1/stream", EVENTS)
    ],
    # A model of tenants is there for all who read, each with the own rows; others are an admin's.
    ("GET", "/v1/models/{name}"): [
        Rule("/v1/models/restaurant_top_dishes", 200, {"ingest": 404}),
        of_admins("/v1/models/market_totals"),
    ],
    ("GET", "/models/{name}"): [
        Rule("/models/restaurant_top_dishes", 200, {"ingest": 404}, form=HTML),
        of_admins("/models/market_totals", form=HTML),
    ],
    ("GET", "/dashboards/{name}"): [
        Rule("/dashboards/both", 200, {"ingest": 404}, form=HTML),
        of_admins("/dashboards/market_totals", form=HTML),
    ],
    ("GET", "/v1/models/{name}/stream"): [
        Rule(STREAM, 200, {"ingest": 404}, form=EVENTS),
        of_admins("/v1/models/market_totals/stream", form=EVENTS),
    ],
    # A session in a browser sends none: another site could send them with its cookie.
    ("POST", "/v1/ingest/{source}"): [
        Rule("/v1/ingest/notes", 403, {"ingest": 200, "cookie": 401, "admin's cookie": 401})
    ],
    # At the end: it ends the sessions.
    ("POST", "/logout"): [open_to_all("/logout", 303)],
}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("methods")
    notes = source("notes", {"id": "string"}, path="notes/*.jsonl")
    commit = GroupCommit(folder / "landing", IngestedKeys(folder / "keys", folder / "landing"))
    # However long the tests take, the snapshot is not stale.
    with site(folder, page=True, every="1d", intake=Intake(by_names([notes]), commit)) as made:
        tables = reference_tables()
        tables["market_totals"] = pa.table({"day": ["2026-03-01"], "order_count": [120]})
        keys = {**KEYS, "market_totals": ("day",)}
        fill_store(made.url, tables, keys, pages=DASHBOARDS)
        made.until(lambda: made.shows(1))
        yield made
    commit.close()


@pytest.fixture
def callers(one: Site) -> dict[str, dict[str, str]]:
    """Return the headers of every kind of caller."""
    own, admin = one.make_token("r1"), one.make_token()
    records, _ = one.tokens.create("till", sources=["notes"])
    one.learn_tokens()
    return {
        **{caller: headers_of(one, caller) for caller in REFUSED},
        **{"own": bearer(own), "admin": bearer(admin), "other": one.bearer("r2")},
        **{"cookie": sign_in(one, own), "admin's cookie": sign_in(one, admin)},
        "ingest": bearer(records),
    }


def sign_in(one: Site, token: str) -> dict[str, str]:
    # In a browser that is signed in, its session would end.
    one.client.cookies.clear()
    answer = one.client.post("/login", data={"token": token}, follow_redirects=False)
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def ask(one: Site, method: str, rule: Rule, headers: Mapping[str, str]) -> tuple[int, str]:
    one.client.cookies.clear()
    sent = {**headers, "Accept": rule.form}
    content = None
    if "/ingest/" in rule.path and method == "POST":
        sent["Content-Type"], content = "application/x-ndjson", '{"id": "a"}'
    if rule.form == EVENTS and method == "GET":
        method = "HEAD"
    answer = one.client.request(
        method, rule.path, headers=sent, content=content, follow_redirects=False
    )
    return answer.status_code, answer.text


def wrong_answers(
    one: Site, callers: Mapping[str, dict[str, str]], kinds: tuple[str, ...]
) -> dict[str, tuple[int, int]]:
    """Return expected and found status of each answer that is not by its rule."""
    found = {}
    for (method, _), rules in RULES.items():
        for rule in rules:
            for caller in kinds:
                status, _ = ask(one, method, rule, callers[caller])
                if status != rule.status(caller):
                    found[f"{method} {rule.path} by {caller}"] = (rule.status(caller), status)
    return found


def test_every_route_and_method_has_a_rule(one: Site) -> None:
    assert routes_of(one.client.app) == set(RULES)


def test_each_route_answers_each_scope_by_its_rule(
    one: Site, callers: Mapping[str, dict[str, str]]
) -> None:
    assert wrong_answers(one, callers, ("none", "revoked", *RIGHT)) == {}


@pytest.mark.extended
def test_each_route_answers_every_wrong_token_and_session_alike(
    one: Site, callers: Mapping[str, dict[str, str]]
) -> None:
    assert wrong_answers(one, callers, REFUSED) == {}


@pytest.mark.extended
def test_a_method_without_a_rule_is_refused_to_every_caller_alike(
    one: Site, callers: Mapping[str, dict[str, str]]
) -> None:
    """HEAD is GET without a body; there is no OPTIONS, as no other site may ask, and no TRACE."""
    offered = {(method, rule.path): rule for (method, _), rules in RULES.items() for rule in rules}
    paths = {path: rule for (_, path), rule in offered.items()}
    wrong = {}
    for path, rule in paths.items():
        for method in METHODS:
            if (method, path) in offered:
                continue
            is_head = method == "HEAD" and ("GET", path) in offered
            rule = offered.get(("GET", path), rule)
            told = {}
            for caller in (*RIGHT, *REFUSED):
                status, text = ask(one, method, rule, callers[caller])
                expected = rule.status(caller) if is_head else 405
                if status != expected:
                    wrong[f"{method} {path} by {caller}"] = (expected, status)
                told[caller] = text
            assert is_head or len(set(told.values())) == 1, (method, path)
    assert wrong == {}
