"""How many questions were converted, by part and source tag, and why the others were not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from parsers.human.convert import Conversion
from parsers.human.records import PARTS, HumanQuestion, NotConverted

ALL = "all"


@dataclass
class Report:
    """Counts of questions and of converted ones, filled by `add`."""

    questions: Counter[tuple[str, str]] = field(default_factory=Counter)  # (part, tag)
    converted: Counter[tuple[str, str]] = field(default_factory=Counter)
    restored: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # (reason, tag)

    def add(self, question: HumanQuestion, result: Conversion | NotConverted) -> None:
        """Count one question; it counts under each of its tags."""
        tags = (ALL, *sorted(set(question.sources)))
        cells = [(part, tag) for part in (ALL, question.part) for tag in tags]
        self.questions.update(cells)
        if isinstance(result, NotConverted):
            self.reasons.update((result.reason, tag) for tag in tags)
        else:
            self.converted.update(cells)
            self.restored += bool(result.restored)

    @property
    def tags(self) -> list[str]:
        """The source tags that occur, after `ALL`."""
        return [ALL, *sorted({tag for _, tag in self.questions} - {ALL})]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Rows of a table: part, source tag, questions, converted, share."""
        for part in (ALL, *PARTS):
            for tag in self.tags:
                if count := self.questions[part, tag]:
                    done = self.converted[part, tag]
                    yield part, tag, str(count), str(done), f"{done / count:.2%}"

    def reason_rows(self) -> Iterator[tuple[str, ...]]:
        """Rows of a table: reason, then how many questions for every tag."""
        for reason, _ in self._sorted_reasons():
            yield reason, *(str(self.reasons[reason, tag]) for tag in self.tags)

    def _sorted_reasons(self) -> list[tuple[str, int]]:
        found = {reason: count for (reason, tag), count in self.reasons.items() if tag == ALL}
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    def to_json(self) -> dict[str, Any]:
        """All counts as one JSON object."""
        return {
            "parts": {
                part: {
                    tag: {
                        "questions": self.questions[part, tag],
                        "converted": self.converted[part, tag],
                    }
                    for tag in self.tags
                }
                for part in (ALL, *PARTS)
            },
            "restored": self.restored,
            "reasons": {
                reason: {tag: self.reasons[reason, tag] for tag in self.tags}
                for reason, _ in self._sorted_reasons()
            },
        }
