"""What (query, answer) pairs reduce to once known links are used."""
