"""Reads files of weights without running code in them, and writes whole files only.

It reads `.pth`, `.pth.tar` and other files of torch.save, and `.safetensors`. Besides
tensors, a file may hold plain data and the classes that MMEngine writes; anything else
is refused by name, unless the caller trusts the author of the file. Claimed and stored
sizes are compared.
"""

import os
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Union

import torch

from mmlinattn.utils.files import whole_file

from . import unpickler
from .storages import Storages

TRUST = 'MMLINATTN_TRUST'
ZIP = b'PK\x03\x04'
# first bytes of the files of torch.save before it wrote zip files
LEGACY = b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.'


def trusted() -> bool:
    """Return True if the user's environment has MMLINATTN_TRUST=1."""
    value = os.environ.get(TRUST, '0') or '0'
    if value not in ('0', '1'):
        raise ValueError(f'{TRUST} must be 0 or 1, got {value!r}')
    return value == '1'


def read_file(
    path: Union[str, Path], name: str = 'checkpoint', trust: bool = False
) -> dict:
    """Read a file of weights, on the CPU.

    Args:
        path: Its path.
        name: The user's name of the argument, for error messages.
        trust: Unpickle everything in it, which can run any code. MMLINATTN_TRUST=1 in
            the environment does the same.

    Returns:
        The content of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is of another kind, is cut off, claims more numbers than
            it holds, holds anything but a dict, or holds more than plain data and is
            not trusted.
        ImportError: If it is a .safetensors file and the package is missing.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f'{name}={str(path)!r}: there is no such file')
    with path.open('rb') as file:
        head = file.read(len(LEGACY))
    if path.suffix == '.safetensors':
        return read_safetensors(path, name)
    check_format(path, head, name)
    trust = trust or trusted()
    try:
        storages = Storages(path, is_zip=head.startswith(ZIP))
        with warnings.catch_warnings():
            # torch 2.1 warns of its own code
            warnings.filterwarnings('ignore', 'TypedStorage is deprecated')
            loaded = torch.load(
                str(path),
                map_location='cpu',
                pickle_module=unpickler.make_module(storages, trust),
                weights_only=False,  # `unpickler` is stricter, in every version
            )
    except unpickler.ForbiddenClass as error:
        raise ValueError(
            f'{name}={str(path)!r} holds more than weights and plain data: a '
            f'{error.name}. Unpickling it can run any code. If you trust the author of '
            f'this file, set {TRUST}=1 in the environment; the commands '
            'train, test, export and convert also take --trust'
        ) from None
    except Exception as error:  # unpickling can raise any error
        reason = str(error).split('\n')[0] or type(error).__name__
        raise ValueError(f'{name}={str(path)!r} cannot be read: {reason}') from error
    if not isinstance(loaded, dict):
        raise ValueError(
            f'{name}={str(path)!r} must hold a dict, but holds a '
            f'{type(loaded).__name__}'
        )
    return loaded


def check_format(path: Path, head: bytes, name: str) -> None:
    """Raise an error for a file that torch.save did not write, before unpickling it."""
    if head.startswith(LEGACY) and not tarfile.is_tarfile(path):
        return
    if not head.startswith(ZIP):
        what = 'is empty' if not head else 'is not a file of torch.save or safetensors'
        raise ValueError(f'{name}={str(path)!r} {what}')
    if not zipfile.is_zipfile(path):
        raise ValueError(f'{name}={str(path)!r} is cut off: download or copy it again')
    with zipfile.ZipFile(path) as archive:
        files = {entry.rpartition('/')[2] for entry in archive.namelist()}
    if 'constants.pkl' in files or 'data.pkl' not in files:
        what = 'a TorchScript program' if 'constants.pkl' in files else 'a zip file'
        raise ValueError(
            f'{name}={str(path)!r} is {what}, not a state dict of torch.save'
        )


def read_safetensors(path: Path, name: str) -> dict:
    """Read a .safetensors file, which holds only tensors."""
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise ImportError(
            f'{name}={str(path)!r} needs the package safetensors: pip install '
            'safetensors'
        ) from None
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f'{name}={str(path)!r} cannot be read: {error}') from error


def write_file(checkpoint: dict, path: Path) -> Path:
    """Save a checkpoint, whole or not at all, in a folder that is made if missing, and
    return its path."""
    with whole_file(path) as draft, draft.open('wb') as file:
        torch.save(checkpoint, file)
    return path
