"""kopl-toolkit, from the JSON file or from a snapshot."""

import sys
from pathlib import Path

from measure import measure

kb_file, programs, out = map(Path, sys.argv[1:4])


def load():
    import kb
    from kopl.executor import Executor

    is_snapshot = kb_file.suffix == ".kopl"
    executor = Executor((kb.read_snapshot if is_snapshot else kb.read_kqapro)(kb_file))
    return executor.denote


measure(load, programs, out)
