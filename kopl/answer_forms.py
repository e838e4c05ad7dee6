"""Yes and no as answers of programs that denote something else.

KoPL has no function for "Is X the capital of Y?". A question may carry an *answer form* beside its
program: ``"exists"`` answers "yes" where a Count counts one or more, ``{"is": NAME}`` where the
denotation is exactly that one string. The program's denotation stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kopl.functions import COUNT
from kopl.program import Call
from kopl.types import Type


@dataclass(frozen=True)
class Exists:
    """Yes where the program, a Count, counts one or more."""

    def to_json(self) -> str:
        """What a line of a question file says."""
        return "exists"


@dataclass(frozen=True)
class Is:
    """Yes where the denotation is exactly this one string."""

    name: str

    def to_json(self) -> dict[str, str]:
        """What a line of a question file says."""
        return {"is": self.name}


AnswerForm: TypeAlias = Exists | Is

# What stands behind a program that a parser writes where not one thing is asked for.
ASKED = SEVERAL, EXISTS, IS = "several", "exists", "is"


@dataclass(frozen=True)
class Asking:
    """What a question asks of what its program denotes: one thing, several ones, yes or no."""

    form: AnswerForm | None = None
    several: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What a parser writes behind the program: nothing, a word, or a word and a name.

        >>> Asking(Is("Oslo")).words, Asking(several=True).words, Asking().words
        (('is', 'Oslo'), ('several',), ())
        """
        if isinstance(self.form, Is):
            return IS, self.form.name
        if self.form is not None:
            return (EXISTS,)
        return (SEVERAL,) if self.several else ()

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Asking:
        """What such words say; raises ValueError for any others."""
        match list(words):
            case []:
                return cls()
            case ["several"]:
                return cls(several=True)
            case ["exists"]:
                return cls(Exists())
            case ["is", name]:
                return cls(Is(name))
        raise ValueError(f"{' '.join(words)!r} says nothing of what is asked for")


# One thing is asked for, and it is what the program denotes.
PLAIN = Asking()


def words_behind(type: Type) -> tuple[str, ...]:
    """The words that may stand behind a program with this output.

    A name is one of what programs denote by names; of a value, Verify says yes or no.
    """
    if type is Type.NUMBER:
        return (EXISTS,)
    if type is Type.TRUTH:
        return ()
    return (SEVERAL, IS) if type in (Type.NAMES, Type.ENTITIES, Type.FACTS) else (SEVERAL,)


def asked_of(program: Call, words: Sequence[str]) -> Asking:
    """What words behind a program ask of it; raises ValueError for such as do not fit it."""
    asking = Asking.of_words(words)
    if words and words[0] not in words_behind(program.function.output):
        raise ValueError(f"{words[0]!r} is not asked of {program.function.output.value}")
    return asking


def read_form(item: Any, program: Call | None = None) -> AnswerForm | None:
    """The answer form that a line of a question file says; None where it says none.

    Raises ValueError for anything else, for "exists" beside a program that does not count, and for
    a name beside one that counts or says yes or no itself.

    >>> read_form({"is": "Oslo"})
    Is(name='Oslo')
    """
    if item is None:
        return None
    if item == "exists":
        if program is not None and program.function is not COUNT:
            raise ValueError(
                "the answer form 'exists' needs a program that ends in Count, not in"
                f" {program.function.name}"
            )
        return Exists()
    if isinstance(item, dict) and list(item) == ["is"] and isinstance(item["is"], str):
        if program is not None and not _reads(Is(item["is"]), program):
            raise ValueError(
                f"the answer form {item!r} needs a program that gives names or values, not"
                f" {program.function.output.value}"
            )
        return Is(item["is"])
    raise ValueError(
        f'the answer form is {item!r}, but must be "exists" or {{"is": NAME}} with a text'
    )


def answer_of(
    denotation: Sequence[str], form: AnswerForm | None, program: Call | None = None
) -> list[str]:
    """The denotation as the form reads it: ["yes"], ["no"], or itself where there is no form.

    A form says nothing of a ``program`` that it cannot read: "exists" of one that does not count,
    a name of one that counts or says yes or no itself. Such a denotation comes back as it is.

    >>> answer_of(["3"], Exists()), answer_of(["Rhine"], Is("Elbe"))
    (['yes'], ['no'])
    """
    if form is None or (program is not None and not _reads(form, program)):
        return list(denotation)
    if isinstance(form, Exists):
        [count] = denotation
        return ["yes" if int(count) else "no"]
    return ["yes" if list(denotation) == [form.name] else "no"]


def _reads(form: AnswerForm, program: Call) -> bool:
    """Whether a form can read what a program denotes."""
    if isinstance(form, Exists):
        return program.function is COUNT
    return program.function.output not in (Type.TRUTH, Type.NUMBER)
