"""Parsers: from a question to a program that runs. Importing this package does not import torch."""
