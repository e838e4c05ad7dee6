"""Lets ``python -m parsers.human`` run the command."""

import sys

from kopl_cli.human import main

if __name__ == "__main__":
    sys.exit(main())
