"""``python -m kopl_cli.human FILE -o OUT``: from questions with query graphs to examples."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from generation.human.convert import Conversion, ConversionCounts, convert
from generation.human.records import PARTS, HumanQuestion, NotConverted, read_questions
from generation.human.schema import GraphSchema, vocabulary
from kb import KnowledgeBase, write_kqapro, write_lines, write_snapshot
from kopl.example import Example
from kopl.traits import asking
from kopl_base.errors import KoplError, counted
from kopl_base.progress import Progress
from kopl_base.stream import writing
from kopl_base.tables import print_table

_KB_WRITERS: dict[str, Callable[[KnowledgeBase, str], object]] = {
    ".json": write_kqapro,
    ".jsonl": write_lines,
    ".koplkb": write_snapshot,
}


def example_of(question: HumanQuestion, conversion: Conversion) -> Example:
    """The example of a converted question; its extra fields are the source tags and its part."""
    return Example(
        question.question,
        conversion.program,
        answer=question.answer,
        choices=question.choices,
        id=question.id,
        type=asking(conversion.program),
        extra={"src": list(question.sources), "part": question.part},
    )


def conversions(
    questions: Sequence[HumanQuestion], schema: GraphSchema
) -> Iterator[tuple[HumanQuestion, Conversion | NotConverted]]:
    """Every question with its program, or with the reason why it has none."""
    with Progress("converting", total=len(questions)) as bar:
        for question in questions:
            try:
                yield question, convert(question, schema)
            except NotConverted as reason:
                yield question, reason
            bar.advance(1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m kopl_cli.human",
        description="Convert questions with simplified query graphs to examples with programs.",
    )
    parser.add_argument("file", metavar="FILE", help="JSON lines with question, target and graph")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="examples (JSON lines)"
    )
    parser.add_argument(
        "--part", choices=PARTS, help="write one part of the fixed 90/10 split only (default: both)"
    )
    parser.add_argument(
        "--rejected", metavar="FILE", help="write what is not converted, with reasons (JSON lines)"
    )
    parser.add_argument("--report", metavar="FILE", help="write all counts (JSON)")
    parser.add_argument(
        "--kb-out", metavar="KB",
        help="write the names that occur as a knowledge base (.json, .jsonl or .koplkb)",
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    try:
        return _run(arguments)
    except KoplError as error:
        print(f"python -m kopl_cli.human: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    ending = Path(arguments.kb_out).suffix if arguments.kb_out else None
    if ending is not None and ending not in _KB_WRITERS:
        raise KoplError(f"--kb-out must end in {', '.join(_KB_WRITERS)}, not {arguments.kb_out!r}")
    paths = (arguments.file, arguments.output, arguments.rejected, arguments.report)
    files = [os.path.realpath(path) for path in (*paths, arguments.kb_out) if path]
    if len(set(files)) < len(files):
        raise KoplError("two of the files are the same one; give each its own name")
    questions = list(read_questions(arguments.file))
    if not questions:
        raise KoplError(f"{arguments.file}: there are no questions in it")
    schema = GraphSchema.of(questions)
    report = ConversionCounts()
    with ExitStack() as stack:
        output = stack.enter_context(writing(arguments.output))
        rejected = stack.enter_context(writing(arguments.rejected)) if arguments.rejected else None
        for question, result in conversions(questions, schema):
            report.add(question, result)
            if arguments.part not in (None, question.part):
                continue
            if isinstance(result, Conversion):
                line = example_of(question, result).to_json()
                output.write(json.dumps(line, ensure_ascii=False) + "\n")
            elif rejected:
                line = {
                    "id": question.id,
                    "question": question.question,
                    "src": list(question.sources),
                    "part": question.part,
                    "reason": result.reason,
                    "detail": result.detail,
                }
                rejected.write(json.dumps(line, ensure_ascii=False) + "\n")
    if ending:
        _KB_WRITERS[ending](vocabulary(questions, schema), arguments.kb_out)
    if arguments.report:
        with writing(arguments.report) as file:
            file.write(json.dumps(report.to_json(), indent=2) + "\n")
    print_table(("part", "source", "questions", "converted", "share"), list(report.rows()))
    have = counted(report.restored, "program has", "programs have")
    print(f"\n{have} a clause that only the question's wording gave.\n")
    if reasons := list(report.reason_rows()):
        print_table(("not converted because", *report.tags), reasons)
    return 0


if __name__ == "__main__":
    sys.exit(main())
