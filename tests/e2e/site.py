"""A running server over a store that the test fills, and the browser's side of it."""

from __future__ import annotations

import os
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Route

from livemart.publish.publisher import confirm
from livemart.serve.auth.tokens import Token, TokenStore
from livemart.serve.server import open_server
from livemart.settings import load_settings
from livemart.store.store import Store
from tests.e2e.raw_orders import AZUL, RawOrders
from tests.serve.apps import wait_until
from tests.store.stores import fill_store, make_snapshot

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts" / "e2e"
DESKTOP, PHONE = 1280, 320
# A published snapshot is never old before the last test has seen it, however slow the machine is.
# And a number of days stays the same for as long as a test may take.
EVERY = timedelta(days=1)
# Ends a wait, and claims nothing of its length. The page's own longest wait is a minute, and a test
# should name the missing thing before pytest ends the test.
PATIENCE_S = 240
PATIENCE_MS = 1000 * PATIENCE_S


class Site:
    """One server over one store, in a thread; `raw` is what was published last.

    The command `serve` is the same server; a separate process would take seconds to start.
    """

    def __init__(self, folder: Path, raw: RawOrders) -> None:
        self.raw = raw
        self.store_url = f"sqlite:///{folder / '_livemart' / 'serving.db'}"
        (folder / "_livemart").mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._snapshot_id = 0
        self._server = ExitStack()
        # It stays bound, so no other program is given the port while the server is down. The server
        # gets the port all the same: both set SO_REUSEADDR, and only one listens.
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reservation.bind(("127.0.0.1", 0))
        self._port = self._reservation.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def publish(self, *, age: timedelta = timedelta(0)) -> None:
        """Publish the models of all orders there are, as the next snapshot; say it was so long ago.

        Args:
            age: how old the snapshot is from the beginning, by the clock that the server has.
        """
        self._snapshot_id += 1
        models = self.raw.models()
        fill_store(
            self.store_url,
            models,
            snapshot_id=self._snapshot_id,
            as_of=self.raw.as_of,
            now=datetime.now(UTC) - age,
        )

    def confirm(self) -> None:
        """Note that the newest snapshot still is the newest: nothing was ordered."""
        with closing(Store.open(self.store_url)) as store:
            snapshot = make_snapshot(self._snapshot_id, self.raw.models())
            assert confirm(store, snapshot, datetime.now(UTC))

    @property
    def warehouse(self) -> Path:
        """The root of the tables that the server is given."""
        return self._folder

    def tokens(self) -> TokenStore:
        """Return the tokens of the store."""
        return TokenStore(self.store_url)

    def make_token(self) -> tuple[str, Token]:
        """Return a new token and its text, once the server asks for one."""
        with closing(self.tokens()) as tokens:
            text, token = tokens.create("owner", tenants=[AZUL], lasts=EVERY)
        # It has to hear of the first token before this machine alone is no longer enough.
        wait_until(lambda: self._status_of("/") == 401, PATIENCE_S)
        return text, token

    def _status_of(self, path: str) -> int:
        """Return the status that somebody without a token gets."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=PATIENCE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def start(self) -> None:
        """Start the server."""
        places = {"project_dir": str(self._folder), "warehouse": str(self._folder)}
        settings = load_settings({**places, "port": self._port, "every": EVERY}, environ={})
        self._server.enter_context(open_server(settings, lambda: None))

    @contextmanager
    def running(self) -> Iterator[Site]:
        """Yield this site while its server runs."""
        try:
            self.start()
            yield self
        finally:
            self.stop()
            self._reservation.close()

    def stop(self) -> None:
        """End the server as an operator would."""
        self._server.close()


def make_site(folder: Path, raw: RawOrders | None = None) -> Site:
    """Return a site without a snapshot, for two weeks of orders unless others are given."""
    return Site(folder, raw or RawOrders.of_two_weeks())


def published_site(folder: Path, *, age: timedelta = timedelta(0)) -> Site:
    """Return a site with one snapshot that is so old."""
    site = make_site(folder)
    site.publish(age=age)
    return site


@dataclass(slots=True)
class Visit:
    """A page in a separate context, and everything that the browser complained about."""

    site: Site
    page: Page
    complaints: list[str] = field(default_factory=list)
    # The console shows errors that a test causes on purpose.
    expected: re.Pattern[str] | None = None

    def go(self, path: str = f"/r/{AZUL}?window=24h") -> None:
        """Open a path of the site."""
        self.page.goto(f"{self.site.url}{path}")

    def wait_live(self) -> None:
        """Wait until the stream is open."""
        self.wait_text("#connection-word", "Live")

    def wait_text(self, selector: str, text: str) -> None:
        """Wait until an element says a text somewhere."""
        self.page.locator(selector).filter(has_text=text).wait_for()

    def figure(self, tile: str) -> Decimal:
        """Return the number of a tile."""
        return number_of(self.page.locator(f"#{tile} .value").inner_text())

    def shown(self) -> list[str]:
        """Return every visible line of the page but its age."""
        text = self.page.locator("body").inner_text()
        return [line for line in text.splitlines() if line.strip() and "updated" not in line]

    def keep_screenshot(self, name: str) -> None:
        """Keep a picture of the whole page among the artifacts."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)

    def unexpected(self) -> list[str]:
        """Return the complaints that the test did not provoke."""
        return [
            text
            for text in self.complaints
            if self.expected is None or not self.expected.search(text)
        ]


def open_visit(
    browser: Browser,
    site: Site,
    *,
    scheme: str = "light",
    width: int = DESKTOP,
    before: Callable[[BrowserContext], None] = lambda _: None,
) -> Visit:
    """Open an empty page whose console, errors and policy violations are recorded."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        # The page must not change while it is examined.
        reduced_motion="reduce",
        # Not the restaurant's: what the page writes must not depend on where it is read.
        timezone_id="Pacific/Auckland",
        locale="de-DE",
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(
        "document.addEventListener('securitypolicyviolation', (event) => console.error("
        "`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));"
    )
    before(context)
    visit = Visit(site, context.new_page())

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            visit.complaints.append(f"{message.type}: {message.text}")

    visit.page.on("console", hear)
    visit.page.on("pageerror", lambda error: visit.complaints.append(f"exception: {error}"))
    visit.page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((f"{site.url}/", "data:"))
            else visit.complaints.append(f"foreign request: {request.url}")
        ),
    )
    return visit


def number_of(text: str) -> Decimal:
    """Return the number in a text as the page writes it.

    >>> number_of("EUR 8,243.50")
    Decimal('8243.50')
    """
    found = re.search(r"-?[\d,]+(\.\d+)?", text)
    assert found is not None, f"no number in {text!r}"
    return Decimal(found[0].replace(",", ""))


def refuse_with(code: str, title: str, detail: str, status: int) -> Callable[[Route], None]:
    """Return a handler that answers like a server with a problem."""

    def answer(route: Route) -> None:
        body = {"type": code, "title": title, "status": status, "code": code, "detail": detail}
        route.fulfill(
            status=status,
            json=body,
            # By itself the page asks again only after the test.
            headers={"Content-Type": "application/problem+json", "Retry-After": "3600"},
        )

    return answer


def is_focused(locator: Locator) -> bool:
    """Return True if the element has the focus."""
    return bool(locator.evaluate("element => element === document.activeElement"))


def is_ci() -> bool:
    """Return True where a missing browser is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true")
