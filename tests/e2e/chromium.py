"""The distribution's Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.site import PATIENCE_MS, is_ci

_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

Launch = Callable[..., Browser]


@contextmanager
def launching() -> Iterator[Launch]:
    """Yield what starts a browser; without one the test is skipped, in CI it fails."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        reason = "Chromium is not installed (apt-get install chromium): its tests did not run"
        if is_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:

        def launch(*flags: str, without: tuple[str, ...] = ()) -> Browser:
            return playwright.chromium.launch(
                executable_path=path,
                args=[*_FLAGS, *flags],
                ignore_default_args=list(without),
                timeout=PATIENCE_MS,
            )

        yield launch
