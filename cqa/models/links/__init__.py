"""Link predictors: scores for the tails of a head and a relation, their training, their rows."""
