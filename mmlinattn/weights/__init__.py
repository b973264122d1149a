"""Recognizes, converts and loads checkpoints, and accounts for every key.

This package lies below the models. It works on given files, state dicts and modules,
and imports torch, never `mmlinattn.models`, because backbones import it.

A checkpoint is read, recognized, renamed, fitted and loaded, in this order. Modules:
`files` and `addresses` read and write, and nothing else; `downloads` fetches;
`unpickler` reads without running code; `families` describe official models in `rows`;
`conversion` recognizes them, and takes a state dict to ours and back; `naming` does so
for our backbones in whole models; `fitting` compares a checkpoint with a model;
`transfer` chooses what a backbone starts from; `pretrained` loads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .addresses import DownloadError, fetch_web, read_checkpoint
from .conversion import convert, convert_back, find_state_dict, recognize
from .downloads import place_of
from .files import read_file, write_file
from .fitting import Fit, fit
from .pretrained import load_pretrained

if TYPE_CHECKING:
    from .loaders import add_file_scheme, load_safely

__all__ = [
    'DownloadError',
    'Fit',
    'add_file_scheme',
    'convert',
    'convert_back',
    'fetch_web',
    'find_state_dict',
    'fit',
    'load_pretrained',
    'load_safely',
    'place_of',
    'read_checkpoint',
    'read_file',
    'recognize',
    'write_file',
]


def __getattr__(name: str) -> Any:
    """Import what changes MMEngine's loaders when it is used: it needs MMEngine."""
    if name not in ('add_file_scheme', 'load_safely'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module('.loaders', __name__), name)
