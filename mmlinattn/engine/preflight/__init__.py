"""Checks before a run that MMEngine makes late or not at all: model, data, labels."""

from .building import LIBRARY_ERRORS, build_model, error_in
from .labels import check_data, find_head
from .maps import check_channels

__all__ = [
    'LIBRARY_ERRORS',
    'build_model',
    'check_channels',
    'check_data',
    'error_in',
    'find_head',
]
