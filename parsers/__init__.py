"""Parsers: from a question to a program that runs. Importing this package does not import torch."""

from kopl_base.conflict import names_of, refuse_others

# Others use the names of our packages, too.
refuse_others("parsers")
__dir__ = names_of("parsers")
