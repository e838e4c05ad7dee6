"""A knowledge base as RDF, in KQA Pro's encoding: written, and read back.

Ids, relations and keys are bare IRI references (see `kb.rdf.iri`), or absolute below a base. Every
value is a blank node, and so is every fact: it has ``pred:fact_h``, ``pred:fact_r`` and
``pred:fact_t`` and one triple per qualifier value, beside the plain triple. Two terms are ours:
``pred:kind`` ("entity" or "concept") and ``pred:parent`` (the ids of the direct concepts, as
strings so that no query over nodes meets them).
"""

from kb.rdf.reader import read_rdf
from kb.rdf.writer import ntriples, turtle, write_rdf

__all__ = ["ntriples", "read_rdf", "turtle", "write_rdf"]
