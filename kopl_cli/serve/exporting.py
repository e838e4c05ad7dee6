"""The corrections as files: training data, KQA Pro's files, a project of Label Studio."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from kopl.example import Example
from kopl_base.errors import KoplError
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.correcting import ANSWERS, Corrections
from kopl_cli.serve.queueing import Queues
from kopl_cli.serve.routes import Download, Field, Route
from parsers.corrections import VERDICTS, Correction

if TYPE_CHECKING:
    from generation.choices import Choices


def training_data(base: Base, corrections: Sequence[Correction]) -> Download:
    """The newest corrections as lines of a question set, which ``kopl train`` reads."""
    lines = [json.dumps(one.to_json(), ensure_ascii=False) for one in corrections]
    text = "".join(f"{line}\n" for line in lines)
    return Download(f"{base.id}-corrections.jsonl", "application/x-ndjson", text)


def kqapro(base: Base, corrections: Sequence[Correction]) -> Download:
    """Those with a program as KQA Pro publishes questions, each with ten choices."""
    from generation.choices import Choices
    from generation.conversion import write_kqapro

    choices = Choices(base.kb)
    examples = [_chosen(one.example(), choices, base) for one in corrections if one.program]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corrections.json"
        write_kqapro(path, examples)
        text = path.read_text("utf-8")
    return Download(f"{base.id}-corrections.json", "application/json", text)


def _chosen(example: Example, choices: Choices, base: Base) -> Example:
    """An example with choices and a query, where it has one answer."""
    from generation.blocks import query_of

    if example.answer is None:
        return example

    def denote(program: Any) -> list[str]:
        return base.executor.run(program).denotation

    truth = example.answer_form is not None
    drawn = choices.draw(
        example.program, example.answer, (), denote, Random(example.id), truth=truth
    )
    try:
        query = query_of(example.program, base.kb)
    except KoplError:
        query = None  # what SPARQL cannot say
    return replace(example, choices=drawn, sparql=query)


LABEL_STUDIO = """<View>
  <Header value="$question"/>
  <Text name="question" value="$question"/>
  <Header value="What was answered: $answer"/>
  <Choices name="verdict" toName="question" choice="single" required="true">
{choices}
  </Choices>
  <TextArea name="program" toName="question" rows="4" maxSubmissions="1"
            placeholder="the program that is right" editable="true"/>
</View>
"""


def label_studio(
    base: Base, corrections: Sequence[Correction], waiting: Sequence[Mapping[str, Any]] = ()
) -> Download:
    """The tasks of a project of Label Studio.

    What was predicted is a task's prediction, what a person said its annotation. ``waiting`` are
    the items of the queue that nobody has judged yet.
    """
    tasks = [_task(one) for one in corrections]
    tasks += [_open_task(one) for one in waiting]
    text = json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"
    return Download(f"{base.id}-tasks.json", "application/json", text)


def interface(base: Base, _: Sequence[Correction]) -> Download:
    """The labelling interface of that project, to be pasted into its settings."""
    choices = "\n".join(f'    <Choice value="{one}"/>' for one in VERDICTS)
    text = LABEL_STUDIO.replace("{choices}", choices)
    return Download(f"{base.id}-interface.xml", "application/xml", text)


def _task(one: Correction) -> dict[str, Any]:
    before = one.predicted
    task = _asked(one.id, one.question, () if before is None else before.answers)
    if before is not None:
        task["predictions"] = [_prediction(before.program, before.confidence)]
    program = None if one.program is None else str(one.program)
    said = {"result": _result(one.verdict, program), "completed_by": {"email": one.author}}
    if not one.author:
        del said["completed_by"]
    return task | {"annotations": [said], "meta": {"time": one.time, "note": one.note}}


def _open_task(item: Mapping[str, Any]) -> dict[str, Any]:
    best = (item["answer"] or {}).get("answers") or [{}]
    answer = (best[0].get("answer") or {}).get("answers", ())
    task = _asked(item["id"], item["question"], answer)
    if (program := best[0].get("text")) is not None:
        task["predictions"] = [_prediction(program, item["confidence"] or 0.0)]
    return task


def _asked(id: str, question: str, answers: Sequence[str]) -> dict[str, Any]:
    shown = "; ".join(answers[:ANSWERS]) or "(nothing)"
    return {"data": {"id": id, "question": question, "answer": shown}}


def _prediction(program: str | None, confidence: float) -> dict[str, Any]:
    return {
        "model_version": "kopl",
        "score": round(confidence, 6),
        "result": _result("right", program),
    }


def _result(verdict: str, program: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"from_name": "verdict", "to_name": "question", "type": "choices",
         "value": {"choices": [verdict]}}
    ]  # fmt: skip
    if program is not None:
        found.append(
            {"from_name": "program", "to_name": "question", "type": "textarea",
             "value": {"text": [program]}}
        )  # fmt: skip
    return found


def _export(playground: Playground, given: dict[str, Any]) -> Download:
    base = playground.base(given["kb"])
    corrections = playground.part(Corrections).newest(base)
    if given["form"] == "label-studio":
        return label_studio(base, corrections, playground.part(Queues).of(base).waiting())
    return FORMS[given["form"]](base, corrections)


FORMS = {"training": training_data, "kqapro": kqapro, "label-studio-interface": interface}

ROUTES = [
    Route(
        "GET",
        "/api/corrections/export",
        "The corrections as a file.",
        _export,
        (
            Field(
                "form",
                "text",
                "what to write",
                default="training",
                choices=(*FORMS, "label-studio"),
            ),
        ),
    ),
]
