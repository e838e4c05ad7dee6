"""Encoder-decoders of transformers, such as BART."""
