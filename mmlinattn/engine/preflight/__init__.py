"""Checks before a run that MMEngine makes late or not at all: model, data, labels."""

from .building import (
    LIBRARY_ERRORS,
    build_model,
    check_strides,
    core_of,
    error_in,
    predicting_part,
)
from .files import read_photos
from .inherited import check_inherited
from .labels import check_data, find_head
from .maps import check_channels, check_levels, maps_of
from .parts import check_parts
from .samples import parts_of

__all__ = [
    'LIBRARY_ERRORS',
    'build_model',
    'check_channels',
    'check_data',
    'check_inherited',
    'check_levels',
    'check_parts',
    'check_strides',
    'core_of',
    'error_in',
    'find_head',
    'maps_of',
    'parts_of',
    'predicting_part',
    'read_photos',
]
