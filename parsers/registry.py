"""Models and output languages by name: the project's own, and those that other packages bring.

A package brings a model by an entry point of the group ``kopl.models``, a language by one of
``kopl.languages`` (`kopl_base.registry`).
"""

from __future__ import annotations

from typing import Any

from kopl_base.registry import Registry, below

# Classes are told by their places: to import them here would be a circle.
MODELS = Registry(
    "kopl.models",
    "model",
    {
        "pointer": "parsers.models.pointer.model:PointerModel",
        "rnn": "parsers.models.rnn.model:RnnModel",
        "seq2seq": "parsers.models.seq2seq.model:Seq2SeqModel",
        "llm": "parsers.models.llm.model:LlmModel",
    },
    below("parsers.models.base.Model"),
)
LANGUAGES = Registry(
    "kopl.languages",
    "language",
    {
        "kopl": "parsers.languages:KoplLanguage",
        "sparql": "parsers.languages:SparqlLanguage",
    },
    below("parsers.languages.OutputLanguage"),
)


def model_class(name: str) -> type[Any]:
    """The class of a model, below `parsers.models.base.Model`.

    Raises SettingsError where there is none, or it cannot be imported.
    """
    return MODELS.loaded(name)


def language_class(name: str) -> type[Any]:
    """The class of an output language, below `parsers.languages.OutputLanguage`.

    Raises SettingsError as `model_class`.
    """
    return LANGUAGES.loaded(name)
