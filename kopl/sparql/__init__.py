"""KoPL as SPARQL and back, and the engines that run it."""
