"""Sampled queries as files."""
