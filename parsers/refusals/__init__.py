"""Knowing when to be silent: how sure an answer is, and why a question is refused."""

from parsers.refusals.refusal import KINDS, Refusal

__all__ = ["KINDS", "Refusal"]
