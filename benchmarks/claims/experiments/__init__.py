"""One module per claim, each with a ``CLAIM``."""
