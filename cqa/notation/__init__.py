"""Queries in the notations that people and programs write."""
