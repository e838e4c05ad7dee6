"""``python -m kopl`` is the command ``kopl``."""

from kopl.cli import entry

entry()
