"""Recognizes, converts and loads checkpoints, and accounts for every key.

This room lies below the models. It works on files, state dicts and modules that it is
given, and imports torch, MMEngine and the registry, never `mmlinattn.models`, because
backbones import it. It asks a model for what it needs to know of it.

Rooms: `files` and `addresses` read and write, `unpickler` makes sure that reading runs
no code; `families` says what official models are made of, in `rows`; `conversion` takes
a state dict to ours and back; `start` finds what a plain model's weights can start
another attention with; `options` compares what keys don't show; `pretrained` loads;
`fit` tells what of a checkpoint loads into a model.
"""

from .addresses import add_file_scheme, fetch, load_safely, read_checkpoint
from .conversion import convert, convert_back, find_state_dict, recognize
from .files import read_file, write_file
from .fit import fit
from .pretrained import load_head, load_pretrained

__all__ = [
    'convert',
    'convert_back',
    'fetch',
    'find_state_dict',
    'fit',
    'load_head',
    'load_pretrained',
    'load_safely',
    'read_checkpoint',
    'read_file',
    'recognize',
    'write_file',
]

add_file_scheme()
