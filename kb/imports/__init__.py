"""Knowledge bases made from other people's files: tables, and dumps of Wikidata."""
