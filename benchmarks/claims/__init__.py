"""The papers' claims as small experiments."""
