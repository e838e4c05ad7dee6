"""``python eval.py …`` is ``kopl eval …``, for those who work in a clone of the repository."""

from kopl_cli import entry

if __name__ == "__main__":
    entry("eval")
