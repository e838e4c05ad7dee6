"""The tools for agents, in memory, on standard input and output, and by HTTP."""
