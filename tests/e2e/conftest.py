"""The distribution's Chromium, and servers over stores that the tests fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.e2e.chromium import Launch, launching
from tests.e2e.raw_orders import RawOrders
from tests.e2e.site import DESKTOP, Site, Visit, make_site, open_visit, published_site

OpenSite = Callable[..., Site]
OpenVisit = Callable[..., Visit]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Launch]:
    """Start the distribution's Chromium; without one the tests are skipped, in CI they fail."""
    with launching() as launch:
        yield launch


@pytest.fixture(scope="session")
def browser(chromium: Launch) -> Iterator[Browser]:
    """A browser as owners have it."""
    browser = chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def remembering_browser(chromium: Launch) -> Iterator[Browser]:
    """A browser whose way back shows pages as they were left; playwright's own does not."""
    browser = chromium(without=("--disable-back-forward-cache",))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def scriptless_browser(chromium: Launch) -> Iterator[Browser]:
    """A browser in which pages run no script; playwright's own switch would hide `noscript`."""
    browser = chromium("--blink-settings=scriptEnabled=false")
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over two weeks of orders, for tests that change nothing."""
    with published_site(tmp_path_factory.mktemp("site")).running() as site:
        yield site


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    """Start servers of a test's own, by orders."""
    with ExitStack() as stack:
        numbers = count()

        def start(*, raw: RawOrders | None = None, is_published: bool = True) -> Site:
            site = make_site(tmp_path / f"site{next(numbers)}", raw)
            if is_published:
                site.publish()
            return stack.enter_context(site.running())

        yield start


@pytest.fixture
def visit(request: pytest.FixtureRequest) -> Iterator[OpenVisit]:
    """Open pages; at the end nothing may have been complained about unless it was expected."""
    visits: list[Visit] = []

    def start(
        site: Site,
        *,
        scheme: str = "light",
        width: int = DESKTOP,
        has_script: bool = True,
        is_remembering: bool = False,
        before: Callable[[BrowserContext], None] = lambda _: None,
    ) -> Visit:
        name = "browser" if has_script else "scriptless_browser"
        name = "remembering_browser" if is_remembering else name
        browser: Browser = request.getfixturevalue(name)
        opened = open_visit(browser, site, scheme=scheme, width=width, before=before)
        visits.append(opened)
        return opened

    yield start
    for opened in visits:
        opened.page.context.close()
    complaints = [text for opened in visits for text in opened.unexpected()]
    assert complaints == []
