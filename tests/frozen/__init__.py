"""What commands write over fixed inputs, compared byte for byte.

While code is moved, nothing that a user sees may change: `cases` lists commands, ``records/`` holds
what they wrote before the first move (standard output, messages, exit status and every file), and
`test_frozen` runs them again and compares. The cases that a part of the code concerns run with::

    python -m pytest -q tests/frozen -k "cqa or generate"

A difference is a fault of the code, not of the record. Only a change that is meant to alter what
users see renews a record, by name, and its commit says what changed and why::

    python -m tests.frozen.record NAME…        (or --all)

A record shows a long line or file cut, with the hash of all of it, so that every byte counts.
What differs between two runs of the same code (times, folders) has a placeholder such as
``<seconds>``; `record.PLACEHOLDERS` lists all of them. Parquet is compared by its rows, and pickles
by what is in them.

This folder stays until generated questions are meant to change; then it goes, or is recorded anew.
"""
