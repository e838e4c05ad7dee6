"""Answering queries: one walk with exchangeable semirings."""
