"""``python -m kopl`` is the command ``kopl``."""

from kopl_cli import entry

entry()
