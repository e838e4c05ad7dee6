"""A second, naive KoPL executor and random inputs for differential tests."""
