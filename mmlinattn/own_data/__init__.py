"""Reads folders of photos with annotations, and writes lists for configs.

The way of a folder, each step in a module: ``folder`` finds its files, ``readers`` read
annotations and ``matching`` their photos, ``headers`` measures photos and ``fitting``
brings objects into them, ``splits`` divides, ``map_reader`` reads label maps,
``labelings`` and ``label_maps`` give labels to pixels, ``checks`` has what is refused
or said, ``write`` writes. ``other_formats`` names what is not read, by the table
``format_marks``. ``data_set`` calls them in turn; ``records`` and ``outlines`` have
what they give each other.
"""

from .class_tables import parse_colors
from .data_set import OwnData
from .headers import Header, depth_notes, read_headers
from .records import OBJECT_TASKS, Note, Options, Photo
from .words import PHOTO_ENDINGS
from .write import write

__all__ = [
    'OBJECT_TASKS',
    'PHOTO_ENDINGS',
    'Header',
    'Note',
    'Options',
    'OwnData',
    'Photo',
    'depth_notes',
    'parse_colors',
    'read_headers',
    'write',
]
