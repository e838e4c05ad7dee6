"""Complex queries over incomplete knowledge graphs: answering, sampling, hardness, evaluation."""

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
    _conflict.refuse_others("cqa")
    __dir__ = _conflict.names_of("cqa")
