"""Layers that attentions, backbones and necks share."""
