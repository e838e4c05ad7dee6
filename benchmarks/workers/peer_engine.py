"""The PyPI package ``kopl-engine`` (0.1.1), C++ behind ctypes, one thread."""

import json
import sys
from pathlib import Path

from measure import measure

kb_file, programs, out = map(Path, sys.argv[1:4])


def load():
    from kopl_engine import engine

    executor = engine.init(str(kb_file), 1)

    def run(text):
        return engine.forward(executor, engine.parse_program(json.loads(text)), False)

    return run


measure(load, programs, out)
