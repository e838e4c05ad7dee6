"""Tests of learned models."""
