"""The settings of a run: typed, from YAML and ``key=value`` pairs; unknown ones are errors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.errors import KoplError
from kb.search import near_names


class SettingsError(KoplError):
    """A setting that does not exist or has a value of the wrong form."""

    kind = "settings"


@dataclass(frozen=True)
class Settings:
    """What a run is made with; saved beside its checkpoint.

    ``data`` is a file of examples; without one, ``questions`` of them are generated over ``kb``.
    ``minutes`` stops the training early (0: never); a run that time stops depends on the machine.
    """

    kb: str = "world"
    data: str = ""
    questions: int = 20_000
    seed: int = 1
    output: str = "runs/default"
    embedding: int = 128
    hidden: int = 256
    dropout: float = 0.25
    batch: int = 64
    epochs: int = 8
    minutes: float = 0.0
    learning_rate: float = 2e-3
    weight_decay: float = 1e-5
    gradient_norm: float = 1.0
    threads: int = 2
    validation: int = 500

    def __post_init__(self) -> None:
        for name in ("questions", "embedding", "hidden", "batch", "epochs", "threads"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise SettingsError(f"dropout must be from 0 to below 1, not {self.dropout}")
        if self.hidden % 2:
            raise SettingsError(f"hidden must be even, not {self.hidden}")

    def changed(self, changes: dict[str, Any]) -> Settings:
        """These settings with some of them changed; raises SettingsError for unknown ones."""
        fields = {field.name: field for field in dataclasses.fields(self)}
        for name in changes:
            if name not in fields:
                near = near_names(name, fields)
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise SettingsError(f"there is no setting {name!r}{hint}")
        return dataclasses.replace(
            self, **{name: _typed(fields[name], value) for name, value in changes.items()}
        )

    def to_json(self) -> str:
        """The settings as a JSON text, one a line."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings that `to_json` wrote."""
        return cls().changed(json.loads(text))


def _typed(field: dataclasses.Field[Any], value: Any) -> Any:
    wanted = {"str": str, "int": int, "float": float}[str(field.type)]
    fits = isinstance(value, (int, float) if wanted is float else wanted)
    if fits and not isinstance(value, bool):
        return wanted(value)
    if isinstance(value, str):
        try:
            return wanted(value)
        except ValueError:
            pass
    raise SettingsError(f"{field.name} must be of type {field.type}, not {value!r}")


def read_settings(config: Path | None, pairs: Iterable[str] = ()) -> Settings:
    """The settings of a YAML file with ``key=value`` pairs on top.

    Raises SettingsError that names the file or pair.
    """
    settings = Settings()
    if config is not None:
        settings = settings.changed(_read_yaml(config))
    changes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"--set takes key=value, not {pair!r}")
        changes[name.strip()] = value.strip()
    return settings.changed(changes)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise SettingsError("reading a config needs PyYAML: pip install -e '.[train]'") from None
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
