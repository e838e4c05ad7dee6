"""Generation of questions with programs and answers from a knowledge base, by a grammar."""

from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

# Others use the names of our packages, too. Who does is looked up by a file that is loaded by its
# path: the name kb may lead elsewhere. (Packed into one file, the toolkit has no such paths.)
_found = spec_from_file_location("kb.conflict", Path(__file__).parents[1] / "kb" / "conflict.py")
assert _found and _found.loader
_conflict = module_from_spec(_found)
with suppress(FileNotFoundError):
    _found.loader.exec_module(_conflict)
    _conflict.refuse_others("generation")
    __dir__ = _conflict.names_of("generation")

from generation.grammar import Grammar, load_grammar, read_grammar
from generation.pipeline import GenerationError, generate
from generation.splits import split

__all__ = [
    "GenerationError",
    "Grammar",
    "generate",
    "load_grammar",
    "read_grammar",
    "split",
]
