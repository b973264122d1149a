"""Where weights are: a path, file://, http(s)://, timm://, or what MMEngine reads."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional
from urllib.error import URLError
from urllib.parse import unquote, urlparse

import torch
from mmengine.dist import barrier, get_dist_info, is_distributed
from mmengine.fileio import get_local_path
from mmengine.runner import CheckpointLoader
from mmengine.runner.checkpoint import (
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    get_torchvision_models,
)

from .files import read_file

FILE = 'file://'
TIMM = 'timm://'
WEB = ('http://', 'https://')
# names of models, which MMEngine looks up in tables of addresses
TABLES = {
    'torchvision://': get_torchvision_models,
    'modelzoo://': get_torchvision_models,
    'open-mmlab://': get_external_models,
    'openmmlab://': get_external_models,
    'mmcls://': get_mmcls_models,
}
# of file systems that MMEngine reads; patterns
REMOTE = (r'(\S+\:)?s3://', r'(\S+\:)?petrel://', 'pavi://')
# how torchvision, timm and OpenMMLab end a name; digits alone may be a date
NAME_WITH_HASH = re.compile(r'-(?=\d*[a-f])([0-9a-f]{8,})\.')


def as_path(address: str) -> Optional[str]:
    """The path that an address stands for, or None if it is not on this machine.

    Args:
        address: A path or an address.
    """
    if address.startswith(FILE):
        return unquote(urlparse(address).path)
    return None if '://' in address else os.path.expanduser(address)


def read_checkpoint(
    address: str, name: str = 'checkpoint', trust: bool = False, map_location='cpu'
) -> dict:
    """Read weights from a path or an address.

    Args:
        address: A path, `file://PATH`, `http(s)://...`, `timm://MODEL`, or an address
            of another of MMEngine's file systems.
        name: The user's name of the address, for error messages.
        trust: See :func:`~.files.read_file`.
        map_location: Device for the tensors.

    Returns:
        What the file holds, or timm's state dict.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: See :func:`~.files.read_file`; or if timm has no such model.
        ConnectionError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    if address.startswith(TIMM):
        return read_timm(address[len(TIMM) :], name)
    path = as_path(address)
    if path is None and address.startswith(WEB):
        path = download(address, name)
    if path is not None:
        return read_file(path, name, trust, map_location)
    with other_file(address, name) as path:
        return read_file(path, name, trust, map_location)


def fetch(address: str, name: str) -> None:
    """Download what :func:`read_checkpoint` would, if it is at a web address.

    Raises:
        ConnectionError: If the download fails.
    """
    if address.startswith(WEB):
        download(address, name)


def no_way(address: str, name: str, reason: str) -> ConnectionError:
    """The error for what can't be downloaded, with the ways out."""
    scratch = ', or set pretrained=None to train from scratch'
    return ConnectionError(
        f'{name}={address!r} cannot be downloaded ({reason}): fetch it on another '
        f'machine and give its path{scratch if name == "pretrained" else ""}'
    )


def download(address: str, name: str) -> str:
    """Download a file once, to torch.hub's folder for checkpoints.

    If there are several processes, the first one downloads and the others wait.

    Raises:
        ConnectionError: If the download fails.
    """
    folder = Path(torch.hub.get_dir(), 'checkpoints')
    file_name = os.path.basename(urlparse(address).path)
    path = folder / file_name
    rank, _ = get_dist_info()
    if is_distributed() and rank:
        barrier()
    try:
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            digits = NAME_WITH_HASH.search(file_name)
            torch.hub.download_url_to_file(
                address, str(path), digits and digits[1], progress=rank == 0
            )
    except (URLError, OSError, RuntimeError) as error:
        raise no_way(address, name, getattr(error, 'reason', error)) from error
    finally:
        if is_distributed() and not rank:
            barrier()
    return str(path)


@contextmanager
def other_file(address: str, name: str) -> Iterator[str]:
    """A local copy of a file of another file system that MMEngine knows.

    Raises:
        ValueError: If it knows none for the address.
    """
    try:
        context = get_local_path(address)
        path = context.__enter__()
    except Exception as error:
        raise ValueError(
            f'{name}={address!r} cannot be read ({error}): give a path, '
            f'{FILE}PATH, http(s)://ADDRESS or {TIMM}MODEL'
        ) from error
    try:
        yield str(path)
    finally:
        context.__exit__(None, None, None)


def read_timm(model: str, name: str) -> dict:
    """The state dict of a pretrained model of timm.

    Raises:
        ImportError: If timm is missing.
        ValueError: If it has no such model, or no weights for it.
        ConnectionError: If they cannot be downloaded.
    """
    try:
        import timm
    except ImportError:
        raise ImportError(
            f'{name}={TIMM + model!r} needs timm: pip install timm'
        ) from None
    architecture = model.partition('.')[0]
    if not timm.is_model(architecture):
        raise ValueError(f'{name}={TIMM + model!r}: timm has no such model')
    if not timm.is_model_pretrained(model):
        raise ValueError(f'{name}={TIMM + model!r}: timm has no weights for this model')
    try:
        return timm.create_model(model, pretrained=True).state_dict()
    except Exception as error:  # of any of the libraries that it downloads with
        reason = str(error).split('\n')[0]
        raise no_way(TIMM + model, name, reason) from error


def load_from_file(address: str, map_location=None) -> dict:
    """MMEngine's loaders with :func:`read_checkpoint`."""
    return read_checkpoint(address, map_location=map_location)


def add_file_scheme() -> None:
    """Let MMEngine's load_from take file:// addresses, where nobody else has."""
    with suppress(KeyError):
        CheckpointLoader.register_scheme(FILE, load_from_file)


def load_by_name(address: str, map_location=None) -> dict:
    """MMEngine's loaders of models by name with :func:`read_checkpoint`.

    Raises:
        ValueError: If there is no such model.
    """
    scheme, separator, model = address.partition('://')
    names = TABLES[scheme + separator]()
    model = get_deprecated_model_names().get(model, model)
    if model not in names:
        raise ValueError(f'checkpoint={address!r}: {scheme} has no such model')
    checkpoint = read_checkpoint(names[model], map_location=map_location)
    if scheme != 'mmcls':
        return checkpoint
    # a classifier's backbone
    weights = checkpoint.get('state_dict', checkpoint)
    prefix = 'backbone.'
    return dict(
        state_dict={
            key[len(prefix) :]: value
            for key, value in weights.items()
            if key.startswith(prefix)
        }
    )


def load_safely() -> None:
    """Let every checkpoint of this process go through :func:`read_checkpoint`.

    This is for programs, not for libraries: it takes the place of MMEngine's own
    loaders, so load_from, resume and 'Pretrained' of any module run no code that is
    hidden in a file.
    """
    schemes = ['', FILE, TIMM, *WEB, *REMOTE]
    CheckpointLoader.register_scheme(schemes, load_from_file, force=True)
    CheckpointLoader.register_scheme(list(TABLES), load_by_name, force=True)
