"""Settings of runs: typed, from YAML and ``key=value`` pairs; unknown ones are errors.

A setting of a part has the part before it (``training.batch``). The part may be left out where it
is the training or the chosen model: ``batch`` is ``training.batch``, and with ``model: rnn``
``hidden`` is ``rnn.hidden``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field, Strict, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from kopl_base.errors import SettingsError, near_names
from kopl_base.packages import needs

AnySettings = TypeVar("AnySettings", bound="PartedSettings")


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
class LoopSettings(CheckedSettings):
    """How a network is trained, whatever it learns (`kopl_base.training.optimizer.Options`).

    ``batch`` counts the examples of one step of the optimizer, over all processes; ``part`` splits
    them into parts that fit into memory (0: whole), which changes no result. ``minutes`` is what
    the whole command may take, with the making of examples and the scoring (0: no limit), in
    processor time where a processor trains: where not all epochs fit, the learning rate ends its
    way as the time ends; such a run depends on the machine. Training and scoring get half of it in
    any case. ``checkpoint``: after so many minutes the training is saved, to go on from in the
    middle of an epoch (0: only after epochs). ``warm_up`` is a number of steps, or below 1 a share
    of all. ``schedule``: after the warm-up the learning rate falls linearly to ``floor`` of it
    (linear), falls from the first step on (slope), stays (constant), falls to a tenth after each of
    the epochs that ``drops`` names, as in 5,50 (steps), or falls to a fifth after half of the
    training and again after three quarters, where the optimizer begins anew (fifths). ``decay``
    says what weight decay falls on: all parameters, or only matrices, which spares biases and
    norms. ``precision``: tf32 and bfloat16 are quicker on devices that have them.
    """

    batch: Count = 64
    part: Annotated[Int, Field(ge=0)] = 0
    epochs: Count = 8
    minutes: NotNegative = 0.0
    checkpoint: NotNegative = 10.0
    optimizer: Literal["adam", "adamw", "adagrad"] = "adam"
    learning_rate: NotNegative = 2e-3
    weight_decay: NotNegative = 1e-5
    decay: Literal["all", "matrices"] = "all"
    gradient_norm: NotNegative = 1.0
    warm_up: NotNegative = 100.0
    schedule: Literal["linear", "slope", "constant", "steps", "fifths"] = "slope"
    drops: str = ""
    floor: NotNegative = 0.02
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


class PartedSettings(CheckedSettings):
    """The settings of a run: some of its own, and parts, one of which is that of the model.

    Below it are dataclasses with a ``model``, fields that are parts, and ``others``, where the
    parts stand that are no fields.
    """

    model: str
    others: dict[str, Any]

    @classmethod
    def parts(cls, model: object = None) -> Mapping[str, type[Any]]:
        """The classes of the parts by name, that of a model among them."""
        raise NotImplementedError

    def changed(self: AnySettings, changes: Mapping[str, Any]) -> AnySettings:
        """These settings with some of them changed; raises SettingsError for unknown ones.

        A value may be a mapping for a whole part. Changing the model does not change the defaults
        of the others: begin with those of the model.
        """
        model = changes.get("model", self.model)
        own: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        for name, value in self.flat(changes, model):
            part, key = self._place(name, model)
            if part:
                parts.setdefault(part, {})[key] = value
            else:
                own[key] = value
        others = dict(self.others)
        for part, inside in parts.items():
            if part in _fields(type(self)):
                own[part] = _replaced(part, getattr(self, part), inside)
            else:
                before = others.get(part) or self.parts(model)[part]()
                others[part] = _replaced(part, before, inside)
        return dataclasses.replace(self, **own, others=others)  # type: ignore[type-var]

    @property
    def own(self) -> Any:
        """Those of the chosen model; None where it has none."""
        return getattr(self, self.model, None) or self.others.get(self.model)

    def by_name(self) -> dict[str, Any]:
        """The settings by their names, those of a part as a mapping, as JSON has them."""
        found = dataclasses.asdict(self)  # type: ignore[call-overload]
        others = found.pop("others")
        return {**found, **others}

    def without(self, names: Container[str]) -> dict[str, Any]:
        """The settings one by one, but those of these names."""
        return {name: value for name, value in self.flat(self.by_name()) if name not in names}

    def to_json(self) -> str:
        """The settings as a JSON text, one a line."""
        return json.dumps(self.by_name(), indent=2) + "\n"

    @classmethod
    def from_json(cls: type[AnySettings], text: str) -> AnySettings:
        """The settings that `to_json` wrote; raises SettingsError and ValueError for another."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise SettingsError("settings are an object")
        settings = cls().changed(found)
        if "model" not in found:  # all that were ever written have it
            raise SettingsError("no model is named: these are not the settings of a run")
        return settings

    @classmethod
    def flat(cls, settings: Mapping[str, Any], model: object = None) -> Iterable[tuple[str, Any]]:
        """The settings one by one: a mapping for a part gives one for each of its keys."""
        parts = cls.parts(model if model is not None else settings.get("model"))
        for name, value in settings.items():
            if name in parts:
                if not isinstance(value, Mapping):
                    raise SettingsError(f"{name} is a part with settings of its own, not {value!r}")
                yield from ((f"{name}.{key}", inside) for key, inside in value.items())
            else:
                yield name, value

    @classmethod
    def _place(cls, name: str, model: str) -> tuple[str, str]:
        """Where a setting is: its part ("" for none) and its name there."""
        parts = cls.parts(model)
        own = [key for key in _fields(cls) if key not in parts and key != "others"]
        part, dot, key = name.partition(".")
        if not dot:
            if name in own:
                return "", name
            for part in ("training", model):
                if part in parts and name in _fields(parts[part]):
                    return part, name
        elif part in parts and key in _fields(parts[part]):
            return part, key
        known = [*own, *_fields(parts["training"])]
        known += _fields(parts[model]) if model in parts else []
        known += [f"{part}.{key}" for part, kind in parts.items() for key in _fields(kind)]
        near = near_names(name, known)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise SettingsError(f"there is no setting {name!r}{hint}")


def _replaced(part: str, before: Any, inside: Mapping[str, Any]) -> Any:
    """The settings of a part with some changed; an error names the part, too."""
    try:
        return dataclasses.replace(before, **inside)
    except SettingsError as error:
        raise SettingsError(f"{part}.{error}") from None


def _fields(part: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(part)}


def read_config(
    config: Path | None, pairs: Iterable[str], of: Callable[[Any], AnySettings], model: str
) -> tuple[AnySettings, dict[str, Any], dict[str, str]]:
    """The settings of a YAML file with ``key=value`` pairs on top, then what each of both says.

    ``of`` gives the defaults for a model; ``model`` is the one where neither names any. Raises
    SettingsError that names the file or pair.
    """
    written = {} if config is None else read_yaml(config)
    changes = pairs_of(pairs)
    chosen = changes.get("model", written.get("model", model))
    settings = of(chosen)
    try:
        settings = settings.changed({**written, "model": chosen})
    except SettingsError as error:
        raise (SettingsError(f"{config}: {error}") if config else error) from None
    return settings.changed(changes), written, changes


def pairs_of(pairs: Iterable[str]) -> dict[str, str]:
    """The settings that ``key=value`` texts name; raises SettingsError for another text."""
    changes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"--set takes key=value, not {pair!r}")
        changes[name.strip()] = value.strip()
    return changes


def read_flow(text: str) -> object:
    """What a text of YAML on one line says, as ``[a, {b: c}]``; raises SettingsError."""
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise SettingsError(needs("configs", "PyYAML")) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise SettingsError(f"{text!r} is not YAML, as [a, {{b: c}}]") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The settings of a YAML file; raises SettingsError that names the file for what is none."""
    try:
        import yaml
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
