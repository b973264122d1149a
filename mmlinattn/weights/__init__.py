"""Checkpoints of the world: recognized, converted, accounted for key by key.

This room lies below the models. It works on files, state dicts and modules that it is
given, and imports torch, MMEngine and the registry, never `mmlinattn.models`: backbones
import it, and what it needs of a model it asks the model.

Rooms: `files` and `addresses` read and write, `unpickler` keeps what is read from
running; `families` says what official models are made of, in `rows`; `conversion` takes
a state dict to ours and back; `start` finds what a plain model's weights can start
another attention with; `options` compares what keys don't show; `pretrained` loads.
"""

from .addresses import add_file_scheme, load_safely, read_checkpoint
from .conversion import convert, convert_back, find_state_dict, recognize
from .files import read_file, write_file
from .pretrained import load_pretrained

__all__ = [
    'convert',
    'convert_back',
    'find_state_dict',
    'load_pretrained',
    'load_safely',
    'read_checkpoint',
    'read_file',
    'recognize',
    'write_file',
]

add_file_scheme()
