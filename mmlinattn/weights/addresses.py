"""Addresses of weights: a path, file://, http(s)://, timm://, or one of MMEngine's.

An address without a file's name may have one behind `#/`, which is not sent to the
server: https://HOST/f/1234/?dl=1#/NAME.pth.
"""

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional
from urllib.error import URLError
from urllib.parse import unquote, urlparse

import torch
from mmengine.dist import barrier, get_dist_info, is_distributed
from mmengine.fileio import get_local_path
from mmengine.runner import CheckpointLoader
from mmengine.runner.checkpoint import (
    _get_mmengine_home,
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    get_torchvision_models,
)

from .files import read_file
from .rows import inside

FILE = 'file://'
TIMM = 'timm://'
WEB = ('http://', 'https://')
NAMED = r'https?://\S+#/'  # a pattern for MMEngine
# names of models, which MMEngine looks up in tables of addresses
TABLES = {
    'torchvision://': get_torchvision_models,
    'modelzoo://': get_torchvision_models,
    'open-mmlab://': get_external_models,
    'openmmlab://': get_external_models,
    'mmcls://': get_mmcls_models,
}
# patterns of file systems that MMEngine reads
REMOTE = (r'(\S+\:)?s3://', r'(\S+\:)?petrel://', 'pavi://')
# names that files of many models have
COMMON = re.compile(
    r'(pytorch_)?model|weights|checkpoint|best|last|latest|(epoch|iter)_\d+'
)
# hashes at the end of names of torchvision, timm, OpenMMLab; digits may be a date
NAME_WITH_HASH = re.compile(r'-(?=\d*[a-f])([0-9a-f]{8,})\.')


def read_checkpoint(
    address: str, name: str = 'checkpoint', trust: bool = False
) -> dict:
    """Read weights from a path or an address, on the CPU.

    Args:
        address: A path, `file://PATH`, `http(s)://...`, `timm://MODEL`, a name such as
            `open-mmlab://MODEL`, or an address of another of MMEngine's file systems.
        name: The user's name of the address, for error messages.
        trust: See :func:`~.files.read_file`.

    Returns:
        The content of the file, or timm's state dict.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: See :func:`~.files.read_file`; also if the model is unknown.
        DownloadError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    if address.startswith(TIMM):
        return read_timm(address, name)
    if address.startswith(tuple(TABLES)):
        return read_by_name(address, name, trust)
    if address.startswith(WEB):
        return read_file(download(address, name), name, trust)
    if address.startswith(FILE):
        address = unquote(urlparse(address).path)
    if '://' not in address:
        return read_file(address, name, trust)
    try:
        with get_local_path(address) as path:
            return read_file(path, name, trust)
    except Exception as error:  # from any of MMEngine's file systems
        raise ValueError(
            f'{name}={address!r} cannot be read ({error}): give a path, '
            f'{FILE}PATH, http(s)://ADDRESS or {TIMM}MODEL'
        ) from error


class DownloadError(ConnectionError):
    """A file can't be downloaded.

    Attributes:
        address: Its address, as a config has it.
        reason: Why.
    """

    def __init__(self, name: str, address: str, reason: str) -> None:
        self.address, self.reason = address, reason
        scratch = ', or set pretrained=None to train from scratch'
        super().__init__(
            f'{name}={address!r} cannot be downloaded ({reason}): fetch it on another '
            f'machine and give its path{scratch if name == "pretrained" else ""}'
        )


def download(address: str, name: str) -> str:
    """Download a file once, to torch.hub's folder for checkpoints.

    If there are several processes, the first one downloads and the others wait.
    """
    folder, parsed = Path(torch.hub.get_dir(), 'checkpoints'), urlparse(address)
    file_name = Path(parsed.fragment or parsed.path).name
    digits = NAME_WITH_HASH.search(file_name)
    path = folder / file_name
    # many repositories have a model.safetensors; but one that the libraries would take
    # from this folder was put there by them, or by hand for a machine without a network
    named = digits or parsed.fragment
    if not named and (COMMON.fullmatch(path.stem) or not path.is_file()):
        folder /= hashlib.sha256(address.encode()).hexdigest()[:8]
        path = folder / file_name
    rank, _ = get_dist_info()
    if is_distributed() and rank:
        barrier()
    try:
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(
                address, str(path), digits and digits[1], progress=rank == 0
            )
    except (URLError, OSError, RuntimeError) as error:
        reason = str(getattr(error, 'reason', error))
        raise DownloadError(name, address, reason) from error
    finally:
        if is_distributed() and not rank:
            barrier()
    return str(path)


def read_timm(address: str, name: str) -> dict:
    """The state dict of a pretrained model of timm."""
    try:
        import timm
    except ImportError:
        raise ImportError(f'{name}={address!r} needs timm: pip install timm') from None
    model = address[len(TIMM) :]
    if not timm.is_model_pretrained(model):
        raise ValueError(f'{name}={address!r}: timm has no weights of such a model')
    try:
        return timm.create_model(model, pretrained=True).state_dict()
    except Exception as error:  # from any of the libraries that timm downloads with
        raise DownloadError(name, address, str(error).split('\n')[0]) from error


def read_by_name(address: str, name: str, trust: bool) -> dict:
    """Weights that MMEngine knows by name; from mmcls, a classifier's backbone."""
    scheme, separator, model = address.partition('://')
    known = TABLES[scheme + separator]()
    model = get_deprecated_model_names().get(model, model)
    if model not in known:
        raise ValueError(f'{name}={address!r}: {scheme} has no such model')
    place = known[model]
    if '://' not in place:  # of a table of the user's own
        place = str(Path(_get_mmengine_home(), place))
    try:
        loaded = read_checkpoint(place, name, trust)
    except DownloadError as error:
        raise DownloadError(name, address, error.reason) from error
    if scheme != 'mmcls':
        return loaded
    return dict(state_dict=inside(loaded.get('state_dict', loaded), 'backbone.'))


def load_from_file(address: str, map_location: Any = None) -> dict:
    """MMEngine's loaders with :func:`read_checkpoint`: what a file holds, as it is.
    Tensors stay on the CPU, from where a model copies them."""
    return read_checkpoint(address)


def add_file_scheme() -> None:
    """Let MMEngine's load_from take file:// addresses, and web addresses with a file's
    name behind `#/`, unless another library does."""
    for scheme in (FILE, NAMED):
        with suppress(KeyError):
            CheckpointLoader.register_scheme(scheme, load_from_file)


def load_safely(known: Optional[dict[str, dict]] = None) -> None:
    """Let every checkpoint of this process go through :func:`read_checkpoint`.

    This is for programs, not for libraries: it replaces MMEngine's own loaders, so
    load_from, resume and 'Pretrained' of any module run no code that is hidden in a
    file.

    Args:
        known: Contents of files that were read before, by address. Each is handed on
            once, instead of reading its file again.
    """
    read = dict(known or {})

    def load_from_file(address: str, map_location: Any = None) -> dict:
        return read.pop(address, None) or read_checkpoint(address)

    schemes = ['', FILE, NAMED, TIMM, *WEB, *TABLES, *REMOTE]
    CheckpointLoader.register_scheme(schemes, load_from_file, force=True)
