"""The page of dead letters: a hostile record is only text for every reader."""

from __future__ import annotations

from tests.e2e import accessibility
from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.site import DESKTOP, PHONE
from tests.serve.letters.stored_letters import HOSTILE, letter, store_letters


def test_what_could_not_land_is_shown_and_does_nothing(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    letters = [letter(number, record=HOSTILE, detail=HOSTILE) for number in range(2)]
    long = letter(2, origin="y" * 300, record="x" * 8_192, record_bytes=20_000)
    store_letters(site.warehouse, [*letters, long])
    dialogs: list[str] = []

    for scheme in ("light", "dark"):
        opened = visit(site, scheme=scheme, before=accessibility.bring_axe)
        opened.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        opened.go("/models")
        opened.page.get_by_role("link", name="Dead letters").click()
        opened.page.get_by_label("Source", exact=True).select_option("bronze.orders")
        opened.page.get_by_role("button", name="Show").click()
        opened.page.locator("summary").click()

        assert r"<script>alert(1)</script>\x1b[2J" in opened.page.locator("main").inner_text()
        for width in (DESKTOP, PHONE):
            opened.page.set_viewport_size({"width": width, "height": 900})
            opened.keep_screenshot(f"letters-{scheme}-{width}")
            assert accessibility.violations(opened.page) == []
            assert accessibility.small_targets(opened.page) == []
            assert not accessibility.scrolls_sideways(opened.page)
    assert dialogs == []
