"""Addresses of weights: a path, file://, http(s)://, timm://, or one of MMEngine's.

An address without a file's name may have one behind `#/`, which is not sent to the
server: https://HOST/f/1234/?dl=1#/NAME.pth.
"""

from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlparse

from .downloads import download, place_of
from .files import read_file

FILE = 'file://'
TIMM = 'timm://'
WEB = ('http://', 'https://')
CHOICE = f'give a path, {FILE}PATH, http(s)://ADDRESS or {TIMM}MODEL'


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
        return read_file(fetch_web(address, name), name, trust)
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
        place: Where the file belongs, or '' for any path.
    """

    def __init__(self, name: str, address: str, reason: str, place: str = '') -> None:
        self.address, self.reason, self.place = address, reason, place
        scratch = ', or set pretrained=None to train from scratch'
        put = f', put it at {place}' if place else ''
        super().__init__(
            f'{name}={address!r} cannot be downloaded ({reason}): fetch it on another '
            f'machine{put}{" or" if put else " and"} give its path'
            f'{scratch if name == "pretrained" else ""}'
        )


def fetch_web(address: str, name: str = 'checkpoint') -> Path:
    """Download the file of a web address once.

    Args:
        address: `http(s)://...`, perhaps with a file's name behind `#/`.
        name: The user's name of the address, for error messages.

    Returns:
        Its path, in torch.hub's folder for checkpoints.

    Raises:
        DownloadError: If it cannot be downloaded.
    """
    try:
        return download(address)
    except OSError as error:
        reason = ' '.join(str(getattr(error, 'reason', error)).split())
        place = str(place_of(address))
        raise DownloadError(name, address, reason, place) from error


def read_timm(address: str, name: str) -> dict:
    """Return the state dict of a pretrained model of timm."""
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
