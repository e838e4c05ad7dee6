"""Language models that are shown examples: a parser that needs no training."""
