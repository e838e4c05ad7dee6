"""What a page of the browser tests is watched for, and what is asked of every screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

# How long a test waits for what only fails to come when something is broken, in milliseconds.
LONG = 120_000
# A browser writes a line of its own for each answer that is an error.
REFUSED = "Failed to load resource: the server responded with a status of "


class Watch:
    """The pages of one test, and everything that they did and should not have done.

    A page must write nothing to the console and ask no other origin. The statuses of errors that
    may come are added to ``allowed``.
    """

    def __init__(self, browser: Browser) -> None:
        self.allowed: set[int] = set()
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._wrong: list[str] = []
        self._origins: set[str] = set()

    def context(self, **options: Any) -> BrowserContext:
        """A window that shares nothing with the others: a person at another machine."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(LONG)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._wrong.append(f"error: {error.error}"))
        context.on("request", self._asked)
        self._contexts.append(context)
        return context

    def page(self, address: str, **options: Any) -> Page:
        """A page that shows an address, in a window of its own unless ``context`` is one."""
        context = options.pop("context", None) or self.context(**options)
        self._origins.add(origin(address))
        page: Page = context.new_page()
        page.goto(address)
        return page

    def gone(self) -> None:
        """A server was ended: what is asked of it from now on fails, and the browser says so."""
        self._contexts[-1].remove_listener("console", self._said)

    def close(self) -> None:
        """Close all, and raise AssertionError where something was wrong."""
        for context in self._contexts:
            context.close()
        assert not self._wrong, "\n".join(self._wrong)

    def _said(self, message: ConsoleMessage) -> None:
        if message.text.startswith(REFUSED):
            status = int(message.text.removeprefix(REFUSED).split()[0])
            if status in self.allowed:
                return
        where = message.location.get("url", "")
        self._wrong.append(f"console, {message.type}: {message.text} ({where})")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).scheme in ("data", "blob"):
            return
        if origin(request.url) not in self._origins:
            self._wrong.append(f"a request to {request.url}")


def origin(address: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def axe() -> str:
    """The source of axe-core, which finds what people with other senses cannot use."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


def assert_accessible(page: Page) -> None:
    """Raise AssertionError with what axe-core finds wrong in what a page shows now."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe())
    found = page.evaluate("() => axe.run()")
    wrong = [
        f"{one['id']}: {one['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
    assert not wrong, f"{page.url}\n" + "\n".join(wrong)


def assert_fits(page: Page) -> None:
    """Raise AssertionError where a page is wider than its window."""
    found = page.evaluate(
        """() => {
            const room = document.documentElement.clientWidth;
            const own = ['auto', 'scroll', 'hidden', 'clip'];
            const wide = [...document.querySelectorAll('body *')].filter((one) => {
                if (one.getBoundingClientRect().right <= room + 1) return false;
                for (let up = one.parentElement; up; up = up.parentElement)
                    if (own.includes(getComputedStyle(up).overflowX)) return false;
                return true;
            });
            return {over: document.documentElement.scrollWidth - room,
                    wide: wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 160))};
        }"""
    )
    assert found["over"] <= 0, f"{page.url} is {found['over']} px too wide: {found['wide']}"


def tabbed(page: Page, reached: Callable[[], bool], most: int = 200) -> None:
    """Press Tab until something is reached; AssertionError where it cannot be."""
    for _ in range(most):
        if reached():
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{page.url}: not reached with {most} times Tab")
