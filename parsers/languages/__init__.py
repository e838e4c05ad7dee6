"""Output languages of the parsers: what is written for a question, read back and run.

A language knows nothing of models: each model writes either of them.
"""

from __future__ import annotations

from kb import KnowledgeBase
from parsers.languages.base import Language, NotWritableError
from parsers.languages.kopl import KoplLanguage
from parsers.languages.sparql import SparqlLanguage
from parsers.settings import Settings


def language_of(settings: Settings, kb: KnowledgeBase) -> Language:
    """The output language that the settings name, over a knowledge base."""
    if settings.language == "sparql":
        return SparqlLanguage(kb, style="exact" if settings.query_style == "exact" else "data")
    return KoplLanguage(kb)


__all__ = ["KoplLanguage", "Language", "NotWritableError", "SparqlLanguage", "language_of"]
