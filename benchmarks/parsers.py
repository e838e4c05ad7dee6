"""Parsers: accuracy of the default run, the paper's RNN, harder splits, people's questions, speed.

    KOPL_DATA=DATA python benchmarks/parsers.py                      # all parts, hours on two cores
    python benchmarks/parsers.py default rnn --seeds 1 2 3           # some of them
    python benchmarks/parsers.py new-kb --questions 300 --set training.epochs=1    # to try it

Runs are kept in the folder of --output, with each part's figures (PART.json) and tables (PART.md,
also printed). A series that was stopped goes on with what is missing; figures that are there are
not measured again, not even after a change of the code, unless --again asks for it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

# This file has the name of a package that it measures, and its folder comes first.
ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p).resolve() != ROOT / "benchmarks")]

from benchmarks.parsing import compositional, default, human, inference, new_kb, rnn  # noqa: E402
from benchmarks.parsing.series import INTERRUPTED, QUESTIONS, Series, tell  # noqa: E402
from benchmarks.parsing.tables import Section  # noqa: E402
from kb import KoplError  # noqa: E402
from kopl_base.stream import writing  # noqa: E402
from kopl_cli.common import positive  # noqa: E402

GRAPHS = Path("kqapro") / "questions_graph_answer.jsonl"

Measure = Callable[[Series, argparse.Namespace], Section]
PARTS: dict[str, Measure] = {
    "default": lambda series, _: default.measure(series),
    "rnn": lambda series, given: rnn.measure(series, given.tries),
    "compositional": lambda series, _: compositional.measure(series),
    "new-kb": lambda series, _: new_kb.measure(series),
    "human": lambda series, given: human.measure(series, given.human, given.pretrained),
    "inference": lambda series, given: inference.measure(series, given.asked),
}


def main() -> int:
    """Measure the parts, one after the other; 1 when one of them failed."""
    given = _arguments()
    parts = given.parts or list(PARTS)
    output = given.output.resolve()
    series = Series(
        output, given.seeds, given.set, parts if given.again else (), given.questions
    )  # fmt: skip
    command = shlex.join(["python", "benchmarks/parsers.py", *sys.argv[1:]])
    failed = False
    for part in parts:
        series.used.clear()
        tell(f"{part}: begins")
        try:
            section = PARTS[part](series, given)
        except KoplError as error:
            tell(f"{part}: not measured: {error}")
            failed = True
            continue
        where = list(dict.fromkeys(done.where for done in series.used))
        text = section.markdown(command, where)
        with writing(output / f"{part}.md") as file:
            file.write(text)
        with writing(output / f"{part}.json") as file:
            figures = {"part": part, "command": command, "where": where, **section.figures}
            file.write(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
        print(text, flush=True)
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="parts: " + ", ".join(PARTS),
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="default: all, one after the other"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[], metavar="S",
        help="default: 1 2 3 for default and rnn, 1 for the others",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=ROOT / "runs" / "benchmarks", metavar="DIR",
        help="where runs and figures are kept (default: runs/benchmarks)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="change one setting of every training",
    )  # fmt: skip
    parser.add_argument(
        "--questions", type=positive, default=QUESTIONS, metavar="N",
        help=f"how many are generated (default: {QUESTIONS})",
    )  # fmt: skip
    parser.add_argument(
        "--again", action="store_true", help="measure what was measured before, of the named parts"
    )
    parser.add_argument(
        "--tries", type=int, default=1, choices=range(1, len(rnn.TRIES) + 1), metavar="N",
        help=f"rnn: so many settings are tried first, up to {len(rnn.TRIES)} (default: 1, none)",
    )  # fmt: skip
    parser.add_argument(
        "--human", type=Path, metavar="FILE",
        help=f"human: questions with their graphs (default: {GRAPHS} in the folder KOPL_DATA)",
    )  # fmt: skip
    parser.add_argument(
        "--pretrained",
        default="",
        metavar="NAME",
        help="human: train once more with this pretrained sentence encoder",
    )
    parser.add_argument(
        "--asked", type=positive, default=300, metavar="N",
        help="inference: how many questions are timed one by one (default: 300)",
    )  # fmt: skip
    given = parser.parse_args()
    for part in given.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part!r}; give some of {', '.join(PARTS)}")
    _find_questions(parser, given)
    return given


def _find_questions(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Find the file of people's questions, before hours of other work."""
    import os

    folder = os.environ.get("KOPL_DATA")
    if given.human is None and folder:
        given.human = Path(folder) / GRAPHS
    if "human" in (given.parts or PARTS) and not (given.human and given.human.is_file()):
        what = f"{given.human}: there is no such file" if given.human else "it is not known where"
        parser.error(
            f"the part human needs the questions with their graphs ({what}): give --human FILE,"
            " or set KOPL_DATA to a folder with kqapro, or name the other parts"
        )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"benchmarks/parsers.py: {error}")
    except KeyboardInterrupt:
        print("interrupted; the same command goes on with what is missing", file=sys.stderr)
        sys.exit(INTERRUPTED)
