"""Learned models for logical queries: link predictors, search, operators on embeddings."""
