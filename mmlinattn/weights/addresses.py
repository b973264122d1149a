"""Addresses of weights: a path, file://, http(s)://, timm://, or one of MMEngine's.

An address without a file's name may have one behind `#/`, which is not sent to the
server: https://HOST/f/1234/?dl=1#/NAME.pth.
"""

import hashlib
import re
from importlib import import_module
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlparse

import torch

from .files import read_file

FILE = 'file://'
TIMM = 'timm://'
WEB = ('http://', 'https://')
CHOICE = f'give a path, {FILE}PATH, http(s)://ADDRESS or {TIMM}MODEL'
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
    if address.startswith(WEB):
        return read_file(download(address, name), name, trust)
    if address.startswith(FILE):
        address = unquote(urlparse(address).path)
    if '://' not in address:
        return read_file(address, name, trust)
    try:
        # when it is needed: it imports MMEngine
        loaders = import_module('.loaders', __package__)
    except ImportError as error:
        raise ValueError(
            f'{name}={address!r} cannot be read ({error}): {CHOICE}'
        ) from error
    return loaders.read_by_mmengine(address, name, trust)


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
    rank, world_size = rank_and_world_size()
    if rank:
        torch.distributed.barrier()
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
        if not rank and world_size > 1:
            torch.distributed.barrier()
    return str(path)


def rank_and_world_size() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


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
