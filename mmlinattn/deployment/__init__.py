"""Exports models to files that run without this package, for images of any size."""

from .formats import FORMATS, export, parity, quantize
from .outputs import ExportedModel

__all__ = ['FORMATS', 'ExportedModel', 'export', 'parity', 'quantize']
