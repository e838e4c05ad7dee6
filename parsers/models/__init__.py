"""The parsers' models: each learns from examples and predicts what its output language says."""
