"""Benchmarks that are balanced by hardness."""
