"""The frame of every training: epochs and steps, processes, time, what lies on disk to go on from.

Whoever trains a network derives from `kopl_base.training.loop.TrainingLoop` and says how examples
become batches and what chooses the best epoch. Importing this package does not import torch.
"""

from __future__ import annotations

import re

from kopl_base.errors import SettingsError


def check_device(name: str) -> None:
    """Raise SettingsError for what is no name of a device to compute on."""
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,2})?", name):
        raise SettingsError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}")
