"""Models that embed whole queries: the five operators on states, and their scores."""
