"""Graphs of integer triples: the store, its files and readers."""
