"""Wordings that a language model drafts for the names of a knowledge base, for review by people.

The model is shown each name with facts and with what is said of it now. What it answers is held to
what hand-written entries are held to (`generation.lexicon.proposals`); what is left goes into a
file of annotations in which every entry that has some is marked "todo".
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any

from generation.lexicon import Lexicon
from generation.lexicon.annotations import (
    CONCEPTS,
    EVERYDAY,
    RELATIONS,
    Annotations,
    Given,
    names_of,
)
from generation.lexicon.draft import draft
from generation.lexicon.proposals import PROPOSED, Kept, Sieve
from generation.lexicon.review import reasons
from generation.lexicon.samples import Samples
from generation.paraphrase.model import Model, Request
from generation.paraphrase.prompt import Messages
from generation.paraphrase.replies import ask_all
from kb import KnowledgeBase
from kopl_base.errors import counted
from kopl_base.stream import writing


@dataclass
class Suggestions:
    """What a run did: names that were asked for, those with a wording, wordings kept and dropped.

    ``reasons`` says why wordings were dropped, ``silent`` how many names have no reply.
    """

    names: int = 0
    worded: int = 0
    kept: int = 0
    silent: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        every = self.kept + self.reasons.total()
        why = ", ".join(f"{reason} {count}" for reason, count in self.reasons.most_common())
        return (
            f"kept {self.kept} of {counted(every, 'wording')}, for {self.worded} of"
            f" {counted(self.names, 'name')}" + (f" ({why})" if why else "")
        )


@dataclass
class SuggestionPlan:
    """What is asked: wordings for names of a knowledge base, by the seed.

    Names that ``given`` annotates and does not mark as "todo" are not asked for; with ``doubtful``
    only those whose words are doubted now. ``keep_going``: a name without a reply does not stop the
    run. Raises ReadError for annotations that do not fit the knowledge base.
    """

    kb: KnowledgeBase
    given: Annotations | None = None
    seed: int = 0
    doubtful: bool = False
    keep_going: bool = False

    def __post_init__(self) -> None:
        self.lexicon = Lexicon(self.kb, self.given)
        self.samples = Samples(self.lexicon)

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """The names that are asked for, with their sections."""
        found = []
        for section in PROPOSED:
            given = self.lexicon.annotations.of(section)
            for name in names_of(self.kb, section):
                own = given.get(name)
                if own is not None and not own.todo and own.source != EVERYDAY:
                    continue
                if not self.doubtful or any(reasons(self.lexicon, section, name, own)):
                    found.append((section, name))
        return found

    def every(self) -> Iterator[Request]:
        """What is asked, a request for each name."""
        for section, name in self.names:
            yield self.request(section, name)

    def request(self, section: str, name: str) -> Request:
        """What is asked for one name."""
        told = _prompts()[section]
        facts = "\n".join(self.samples.facts(section, name)) or "(none)"
        said = "\n".join(self.samples.sentences(section, name)) or "(nothing)"
        example = told["example"]
        messages: Messages = [
            {"role": "system", "content": str(_prompts()["system"])},
            {"role": "user", "content": _filled(told["ask"], example)},
            {"role": "assistant", "content": example["answer"]},
            {
                "role": "user",
                "content": _filled(told["ask"], {"name": name, "facts": facts, "said": said}),
            },
        ]
        return Request.of(messages, self.seed, 0)

    def about(self) -> Mapping[str, Any]:
        """What the replies depend on, besides the model."""
        told = json.dumps(_prompts(), sort_keys=True).encode()
        return {"seed": self.seed, "prompt": blake2b(told, digest_size=8).hexdigest()}


def _filled(text: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{(name|facts|said)\}", lambda match: parts[match[1]], text)


@cache
def _prompts() -> dict[str, Any]:
    """What the model is told, by section."""
    import yaml  # type: ignore[import-untyped]

    text = resources.files("generation.lexicon").joinpath("suggest.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def suggest(
    plan: SuggestionPlan, model: Model, output: Path | str, *, resume: bool = False
) -> Suggestions:
    """Write a file of annotations with what a model suggests; the file appears when it is complete.

    Raises AskError when a reply cannot be had, ReadError for a stopped run that does not fit,
    WriteError for a file that cannot be written; replies that came stay in ``FILE.part`` then.
    """
    job = ask_all(plan, model, Path(os.path.realpath(output)), resume=resume)
    report = Suggestions(names=len(plan.names))
    sections: dict[str, dict[str, Given]] = {}
    found: dict[tuple[str, str], Kept] = {}
    sieve = Sieve(plan.lexicon, _examples())
    for section, name in plan.names:
        reply = job.replies.get(plan.request(section, name).key)
        if reply is None:
            report.silent += 1
            continue
        text = reply.text.rpartition("\n")[0] if reply.cut else reply.text  # its last line is half
        facts = plan.samples.ends(section, name)
        found[section, name] = sieve.sift(section, name, facts, text)
    _drop_shared(found)
    for (section, name), kept in found.items():
        report.kept += len(kept.wordings)
        report.reasons += kept.reasons
        if kept.wordings:
            report.worded += 1
            sections.setdefault(section, {})[name] = _given(
                plan, section, name, kept.wordings, model.name
            )
    given = Annotations(sections).over(plan.given)
    with writing(job.output) as file:
        file.writelines(draft(Lexicon(plan.kb, given)))
    job.settle()
    return report


def _examples() -> dict[str, tuple[str, str]]:
    """The name and the answer of the example of each section."""
    told = _prompts()
    return {
        section: (told[section]["example"]["name"], told[section]["example"]["answer"])
        for section in PROPOSED
    }


def _drop_shared(found: Mapping[tuple[str, str], Kept]) -> None:
    """Drop wordings that the model has for several names of a section; adjectives may be shared."""

    def shown(section: str, wording: Mapping[str, Any]) -> str:
        return "" if "adjective" in wording else f"{section} {sorted(wording.items())}"

    counts = Counter(
        shown(section, wording) for (section, _), kept in found.items() for wording in kept.wordings
    )
    for (section, _), kept in found.items():
        said = [(shown(section, wording), wording) for wording in kept.wordings]
        left = [wording for text, wording in said if not text or counts[text] < 2]
        if len(left) < len(kept.wordings):
            kept.reasons["the same for several names"] += len(kept.wordings) - len(left)
            kept.wordings[:] = left


def _given(
    plan: SuggestionPlan, section: str, name: str, wordings: list[dict[str, Any]], model: str
) -> Given:
    """The entry of a name with what was suggested: further wordings, and main ones in doubt."""
    own = plan.lexicon.annotations.of(section).get(name)
    doubts = list(reasons(plan.lexicon, section, name, own))
    fields: dict[str, Any] = dict(own.fields) if own else {}
    if doubts and section != CONCEPTS:
        left = []
        for wording in wordings:
            [(attribute, value), *more] = wording.items()
            if attribute in fields:
                left.append(wording)
            else:
                fields |= {attribute: value, **dict(more)}
        main = {"noun", "forward", "backward"}
        if section == RELATIONS and not (own and own.fields) and not main & fields.keys():
            # Questions alone are no entry of a relation: the guess has its words.
            fields, left = {}, wordings
        wordings = left
    why = f"suggested by {model}: look at every wording"
    todo = "; ".join([why, *(doubt.removeprefix("todo: ") for doubt in doubts)])
    return Given(fields, 0, "", todo, (*(own.also if own else ()), *wordings))
