"""Measures accessibility: axe's rules, sizes of targets, and sideways scrolling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

_AXE = Path(__file__).parent / "vendor" / "axe-core-4.14.1" / "axe.min.js"
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_SMALLEST = 44

_RUN = """async (tags) => {
  const found = await axe.run(document, { runOnly: { type: "tag", values: tags } });
  return found.violations.map(({ id, help, nodes }) =>
    `${id}: ${help}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
}"""

_TARGETS = """(smallest) => [...document.querySelectorAll("a, button, select, input, summary")]
  .filter((element) => element.checkVisibility() && element.type !== "hidden")
  // A link within a sentence is exempt (2.5.8), and so is one that is shown on focus only.
  .filter((element) => !element.matches(".banner a, .skip, main > p > a:only-child:not(.button)"))
  .map((element) => [element, element.getBoundingClientRect()])
  .filter(([, box]) => box.width < smallest - 0.5 || box.height < smallest - 0.5)
  .map(([element, box]) => `${element.outerHTML.slice(0, 80)} ${box.width}x${box.height}`)"""

# WCAG 1.4.12: what a reader may set for all text.
_SPACING = """* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
  word-spacing: 0.16em !important; } p { margin-bottom: 2em !important; }"""

_CLIPPED = """() => [...document.querySelectorAll("body *")]
  .filter((element) => element.checkVisibility() && element.childElementCount === 0)
  .filter((element) => element.textContent.trim())
  .filter((element) => !element.closest(".hidden-text, .skip, .u-wrap"))
  .filter((element) => getComputedStyle(element).overflow !== "visible"
    && element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.outerHTML.slice(0, 80))"""


def bring_axe(context: BrowserContext) -> None:
    """Have axe in every page of a context."""
    context.add_init_script(path=_AXE)


def violations(page: Page) -> list[str]:
    """Return what axe finds, one line each."""
    found: list[str] = page.evaluate(_RUN, _TAGS)
    return found


def small_targets(page: Page) -> list[str]:
    """Return controls smaller than 44 by 44 px."""
    found: list[str] = page.evaluate(_TARGETS, _SMALLEST)
    return found


def scrolls_sideways(page: Page) -> bool:
    """Return True if the page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def clipped(page: Page) -> list[str]:
    """Return text that does not fit where it is."""
    found: list[str] = page.evaluate(_CLIPPED)
    return found


def _adopt(page: Page, style: str) -> None:
    """Set a style by the browser's own means: the policy forbids what the page did not bring."""
    script = """(style) => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(style);
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    }"""
    page.evaluate(script, style)


# Settings that a reader may choose for all text, by name.
ADAPTATIONS: Mapping[str, Callable[[Page], None]] = {
    "spaced-text": lambda page: _adopt(page, _SPACING),
    "large-text": lambda page: _adopt(page, "html { font-size: 200% !important; }"),
}
