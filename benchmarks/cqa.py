"""Logical queries: answering, sampling and hardness, each beside the published programs.

    KOPL_DATA=DATA python benchmarks/cqa.py               # all but the large graph
    KOPL_DATA=DATA python benchmarks/cqa.py --scale       # that of fifty million triples, too

DATA holds the folders fb15k237 and nell995. Each part is a script of its own with options of its
own; this one runs them one after the other, on one core each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).with_name("logical")
PARTS = ("answering", "betae", "sampling", "hardness")
SCALE = "scale"


def main() -> int:
    """Run the parts; the status of the first that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--scale", action="store_true", help="measure the large graph as well")
    arguments = parser.parse_args()
    for part in (*PARTS, SCALE) if arguments.scale else PARTS:
        print(f"## {part}\n", flush=True)
        done = subprocess.run([sys.executable, str(FOLDER / f"{part}.py")])
        if done.returncode:
            return done.returncode
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
