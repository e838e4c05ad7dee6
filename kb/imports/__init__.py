"""Knowledge bases made from other people's files: tables, and dumps of Wikidata.

Three readers stand beside each other: `tables` (rows of things, by a mapping), `facts` (rows of
facts, by a fact map) and `wikidata` (a dump). Below them lie what says how to read, `mapping` with
`fields`, and `factmap`; then the values of a cell (`cells`) and of a statement (`snaks`); and
`common`, which imports none of the others. `draft` writes a mapping from what tables hold:
`profile` tells that, `guesses` and `columns` what it means, `forms` which type texts have.
"""
