"""Query types: operator trees, query graphs, their forms and enumerations."""
