"""Lets ``python -m parsers.human`` run the command."""

import sys

from parsers.human.command import main

if __name__ == "__main__":
    sys.exit(main())
