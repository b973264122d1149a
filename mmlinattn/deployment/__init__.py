"""Exports models to files that run without this package, for images of any size."""

from .formats import FORMATS, export
from .outputs import ExportedModel
from .quantization import quantize
from .verification import parity

__all__ = ['FORMATS', 'ExportedModel', 'export', 'parity', 'quantize']
