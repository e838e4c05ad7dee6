"""The PyPI package ``kopl`` (KoPL 0.0.5), pure Python."""

import json
import sys
from pathlib import Path

from measure import measure

kb_file, programs, out = map(Path, sys.argv[1:4])


def load():
    from kopl.kopl import KoPLEngine

    engine = KoPLEngine(json.loads(kb_file.read_text("utf-8")))

    def run(text):
        program = json.loads(text)
        names = [call["function"] for call in program]
        return engine.forward(names, [call["inputs"] for call in program], ignore_error=True)

    return run


measure(load, programs, out)
