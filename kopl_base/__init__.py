"""What the toolkit stands on: files, processes, servers, HTTP, messages. No knowledge bases."""
