"""What the toolkit stands on: files, processes, progress, messages. Nothing of knowledge bases."""
