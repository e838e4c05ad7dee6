"""Complex queries over incomplete knowledge graphs: answering, sampling, hardness, evaluation."""
