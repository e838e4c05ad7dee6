"""The default model: typed actions, schema items by their names, texts copied from questions."""
