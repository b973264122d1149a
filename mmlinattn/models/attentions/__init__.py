"""Attentions, one a module."""
