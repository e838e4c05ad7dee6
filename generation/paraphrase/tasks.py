"""Task files for people: CSV for spreadsheets, JSON with its configuration for Label Studio.

The paper's two phases: workers write a paraphrase of a canonical question that they see with its
flow chart, or mark it as confusing; then others judge whether it means the same, and how fluent it
is. What comes back is read by `generation.paraphrase.responses`.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from generation.paraphrase.originals import Original
from kopl.diagram import chart, data_uri
from kopl.text import write_nested
from kopl_base.errors import KoplError
from kopl_base.progress import Progress
from kopl_base.stream import writing
from kopl_base.tables import escaped

# The columns of the two phases; the last ones are empty, for people to fill in.
WRITING = (
    "task", "canonical", "question", "program", "answer", "keep", "chart",
    "paraphrase", "confusing", "annotator", "comment",
)  # fmt: skip
JUDGING = (
    "task", "canonical", "paraphrase", "worker", "program", "chart", "doubt",
    "same", "fluency", "judge", "comment",
)  # fmt: skip

# Before an id, as spreadsheets take one like "5-1-10" for a day and write another text back.
ID_MARK = "id "
HIGHEST = 5  # fluency

WRITING_CONFIG = """<View>
  <Header value="Say this question in your own words, as you would ask it."/>
  <Text name="canonical" value="$canonical"/>
  <Header value="These names and values must stay:" size="5"/>
  <Text name="keep" value="$keep"/>
  <Header value="What the question asks, step by step:" size="5"/>
  <Image name="chart" value="$chart" zoom="true" zoomControl="true"/>
  <TextArea name="paraphrase" toName="canonical" rows="3" maxSubmissions="1" editable="true"
            placeholder="Your question"/>
  <Choices name="confusing" toName="canonical" choice="single" showInline="true">
    <Choice value="confusing" hint="I cannot tell what this question asks"/>
  </Choices>
</View>
"""
JUDGING_CONFIG = f"""<View>
  <Header value="Does the second question ask the same as the first?"/>
  <Text name="canonical" value="$canonical"/>
  <Text name="paraphrase" value="$paraphrase"/>
  <Header value="What a comparison by words finds doubtful:" size="5"/>
  <Text name="doubt" value="$doubt"/>
  <Header value="What the first question asks, step by step:" size="5"/>
  <Image name="chart" value="$chart" zoom="true" zoomControl="true"/>
  <Choices name="same" toName="paraphrase" choice="single" required="true" showInline="true">
    <Choice value="yes"/>
    <Choice value="no"/>
  </Choices>
  <Header value="How fluent is the second question? (1: hardly English, {HIGHEST}: perfect)"
          size="5"/>
  <Rating name="fluency" toName="paraphrase" maxRating="{HIGHEST}" required="true"/>
</View>
"""


@dataclass(frozen=True)
class Written:
    """A paraphrase that is to be judged; ``doubt`` is why it is, where the filters doubt it."""

    original: Original
    text: str
    worker: str
    doubt: str = ""


def write_tasks(
    path: Path | str, tasks: Iterable[Original | Written], *, judging: bool = False,
    pictures: Path | str | None = None,
) -> int:  # fmt: skip
    """Write the tasks of a phase and say how many; the file's ending says in which form.

    ``.csv`` (or ``.csv.gz`` …) is a table whose column "chart" names the picture in the folder
    ``pictures``, if that is given; ``.json`` is for Label Studio, with the pictures inside and its
    labelling configuration beside it as ``.xml``. Raises KoplError for another ending, WriteError
    for what cannot be written.
    """
    path = Path(path)
    form = next((end for end in path.suffixes[-2:] if end in (".csv", ".json")), None)
    if form is None or (form == ".json" and path.suffix != ".json"):
        raise KoplError(f"{path}: task files end in .csv (a table) or .json (Label Studio)")
    count = 0
    with writing(path) as file, Progress("writing tasks", None) as bar:
        columns = JUDGING if judging else WRITING
        rows = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        if form == ".csv":
            file.write("\ufeff")  # without it, spreadsheets take UTF-8 for something else
            rows.writerow(columns)
        for task in tasks:
            original = task.original if isinstance(task, Written) else task
            picture = chart(original.example.program)
            row = _fields(task)
            if form == ".csv":
                place = _write_picture(pictures, count + 1, picture, path)
                row |= {"task": ID_MARK + original.id, "chart": place}
                rows.writerow([escaped(row.get(column, "")) for column in columns])
            else:
                row |= {"question_id": original.id, "chart": data_uri(picture)}
                field = "doubt" if judging else "keep"
                row[field] = row[field] or "(nothing)"  # an empty one would be shown as an error
                file.write(",\n" if count else "[\n")
                file.write(json.dumps({"data": row}, ensure_ascii=False))
            count += 1
            bar.advance(1)
        if form == ".json":
            file.write("\n]\n" if count else "[]\n")
    if form == ".json":
        with writing(path.with_suffix(".xml")) as file:
            file.write(JUDGING_CONFIG if judging else WRITING_CONFIG)
    return count


def _fields(task: Original | Written) -> dict[str, str]:
    original = task.original if isinstance(task, Written) else task
    example = original.example
    fields = {"canonical": original.canonical, "program": write_nested(example.program)}
    if isinstance(task, Written):
        return fields | {"paraphrase": task.text, "worker": task.worker, "doubt": task.doubt}
    return fields | {
        "question": example.question,
        "answer": "; ".join(example.answers) or example.answer or "",
        "keep": " · ".join(original.standing),
    }


def _write_picture(folder: Path | str | None, number: int, picture: str, beside: Path) -> str:
    """Write a picture into the folder, if there is one, and say where it is from a file."""
    if folder is None:
        return ""
    path = Path(folder) / f"{number:06}.svg"
    with writing(path) as file:
        file.write(picture)
    return Path(os.path.relpath(path, beside.parent)).as_posix()
