"""Reasoners, their metrics and reports."""
