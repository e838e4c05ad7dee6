"""Only what setup.cfg cannot say: the long description, whose links must lead somewhere on PyPI."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import setup

TOP = Path(__file__).resolve().parent


def long_description() -> str:
    """The README with its relative links made absolute; those of pictures lead to their bytes."""
    config = ConfigParser()
    config.read(TOP / "setup.cfg", "utf-8")
    home = config["metadata"]["url"]
    files = f"{home}/blob/main"
    text = (TOP / "README.md").read_text("utf-8")
    text = re.sub(r"(!\[[^]]*\])\((?![a-z]+:)([^)\s]+)\)", rf"\1({home}/raw/main/\2)", text)
    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", rf"]({files}/\1)", text)


setup(long_description=long_description())
