"""Every path of the application, as a tenant asks for it, and what it answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from livemart.store.served import Dashboard, ProjectPages
from tests.serve.apps import Site, compared
from tests.serve.live.events import open_stream
from tests.waits import PATIENCE_S

JSON, CSV, HTML = "application/json", "text/csv", "text/html"
ARROW, EVENTS = "application/vnd.apache.arrow.stream", "text/event-stream"
SEALED = "livemart-changes-after"


@dataclass(frozen=True, slots=True)
class Case:
    """A path as the application has it, filled in for one restaurant `{r}`; and a wanted form."""

    route: str
    path: str
    form: str = JSON
    method: str = "GET"

    def of(self, restaurant: str) -> str:
        return self.path.replace("{r}", restaurant)


OF_RESTAURANT = [
    *(
        Case(f"/v1/restaurants/{{restaurant_id}}/{kind}", f"/v1/restaurants/{{r}}/{kind}{query}")
        for kind in ("metrics", "top-dishes", "trend")
        for query in ("", "?window=1h", "?window=168h")
    ),
    Case("/v1/restaurants/{restaurant_id}/stream", "/v1/restaurants/{r}/stream", EVENTS),
    Case("/v1/restaurants/{restaurant_id}/stream", "/v1/restaurants/{r}/stream?after=0", EVENTS),
]
OF_MODEL = [
    Case("/v1/models/{name}", "/v1/models/restaurant_top_dishes", form)
    for form in (JSON, CSV, ARROW)
] + [
    Case("/v1/models/{name}", "/v1/models/restaurant_sales_trend?from=2026-03-01T00:00Z", CSV),
    Case("/v1/models/{name}", "/v1/models/order_arrivals?limit=10000"),
    Case("/v1/models/{name}", "/v1/models/restaurant_top_dishes?format=csv"),
    Case("/v1/models/{name}/stream", "/v1/models/restaurant_top_dishes/stream?after=0", EVENTS),
]
OF_NO_TENANT = [
    *(Case("/v1/models/{name}", "/v1/models/market_totals", form) for form in (JSON, CSV, ARROW)),
    Case("/v1/models/{name}/stream", "/v1/models/market_totals/stream?after=0", EVENTS),
    Case("/models/{name}", "/models/market_totals", HTML),
    Case("/dashboards/{name}", "/dashboards/market_totals", HTML),
]
MODEL_PAGES = [
    Case("/models/{name}", "/models/restaurant_top_dishes", HTML),
    Case("/dashboards/{name}", "/dashboards/both", HTML),
]
# One with rows of tenants, and one without.
DASHBOARDS = ProjectPages(
    dashboards={
        "both": Dashboard("Dishes", "", ("market_totals", "restaurant_top_dishes")),
        "market_totals": Dashboard("The market", "", ("market_totals",)),
    }
)
LISTS = [Case("/v1/restaurants", "/v1/restaurants"), Case("/v1/models", "/v1/models")]
PAGES = [
    Case("/r/{restaurant_id}", f"/r/{{r}}{query}", form)
    for query in ("", "?window=1h")
    for form in (HTML, JSON)
]
WAYS = [Case("/", "/?restaurant={r}", HTML), Case("/", "/?restaurant={r}&window=1h", HTML)]
PAGES_OF_ALL = [Case("/", "/", HTML), Case("/models", "/models", HTML)]
CONSOLE = Case("/console", "/console", HTML)
OF_ADMINS = [
    Case("/v1/dead-letters", "/v1/dead-letters"),
    Case("/v1/dead-letters", "/v1/dead-letters?limit=wrong&after=wrong"),
    Case("/dead-letters", "/dead-letters", HTML),
    Case("/dead-letters", "/dead-letters?reason=wrong&from=wrong", HTML),
]
GUARDED = [
    *(*OF_RESTAURANT, *OF_MODEL, *OF_NO_TENANT, *LISTS, *OF_ADMINS),
    *(*PAGES, *WAYS, *PAGES_OF_ALL, *MODEL_PAGES, CONSOLE),
]
# The same for all callers, or with a separate test.
OPEN = [
    Case("/healthz", "/healthz"),
    Case("/readyz", "/readyz"),
    Case("/openapi.json", "/openapi.json"),
    Case("/static/{path:path}", "/static/page.js"),
    Case("/static/{path:path}", "/static/nothing.js"),
    Case("/login", "/login", HTML),
]
OTHERS = [
    Case("/metrics", "/metrics"),
    Case("/login", "/login", HTML, "POST"),
    Case("/logout", "/logout", HTML, "POST"),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers that could tell something, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        if self.headers.get("content-type") == ARROW:
            # In its columns one value begins where another ends.
            return repr(pa.ipc.open_stream(self.body).read_all().to_pylist())
        return self.body.decode()

    def told(self, restaurant: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return the whole answer except the requested restaurant."""
        if not restaurant:
            return self.status, sorted(self.headers.items()), self.body
        # The letters of a sealed id are random: `r2` may be among them.
        headers = [
            (name, value if name == SEALED else value.replace(restaurant, "rX"))
            for name, value in self.headers.items()
        ]
        return self.status, sorted(headers), self.body.replace(restaurant.encode(), b"rX")


def ask(
    one: Site,
    address: tuple[str, int],
    case: Case,
    restaurant: str,
    headers: Mapping[str, str],
) -> Answer:
    """Return the answer; of a stream that is open, its first events."""
    # Compressed, what the caller itself wrote would decide how long the answer is.
    sent = {"Accept-Encoding": "identity", **headers, "Accept": case.form}
    if case.form != EVENTS:
        one.client.cookies.clear()
        answer = one.client.request(
            case.method, case.of(restaurant), headers=sent, follow_redirects=False
        )
        return Answer(answer.status_code, compared(answer.headers), answer.content)

    async def listen() -> Answer:
        async with open_stream(address, case.of(restaurant), sent) as stream:
            told = stream.body
            if stream.status == 200:
                async with asyncio.timeout(PATIENCE_S):
                    async for event in stream.events():
                        told += repr(event.without_sealed_id()).encode()
                        if event.kind == "snapshot":
                            break
            return Answer(stream.status, compared(stream.headers), told)

    return asyncio.run(listen())
