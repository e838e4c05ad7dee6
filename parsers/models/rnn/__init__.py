"""The paper's baseline: GRUs over closed vocabularies (Appendix H of the paper)."""
