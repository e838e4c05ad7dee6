"""The screens of the page, and how a test waits until one is there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

# The names of screens in addresses, with the headings that people see.
SCREENS = ("ask", "program", "base", "sparql", "queue", "learn", "own", "share")


def address(server: str, screen: str, **state: str) -> str:
    """The address of a screen of a server's page with a state, as the page writes it."""
    said = urlencode({name: value for name, value in state.items() if value})
    return f"{server}/#/{screen}" + (f"?{said}" if said else "")


def settle(page: Any) -> None:
    """Wait until the page has what it asked the server for, and shows it."""
    page.evaluate("() => new Promise((told) => setTimeout(() => requestAnimationFrame(told), 0))")
    page.locator("main section.screen:not([hidden])").first.wait_for()
    page.wait_for_function(
        """() => document.documentElement.dataset.waits === '0'
            && !document.querySelector('main .screen:not([hidden]) .spin')"""
    )
