"""MMEngine's checkpoints by our reader: its addresses, and its loaders."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

import mmlinattn

mmlinattn.check_versions()

from mmengine.fileio import get_local_path  # noqa: E402
from mmengine.runner import CheckpointLoader  # noqa: E402
from mmengine.runner.checkpoint import (  # noqa: E402
    _get_mmengine_home,
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    get_torchvision_models,
)

from mmlinattn.utils.names import inside  # noqa: E402

from .addresses import CHOICE, FILE, TIMM, WEB, DownloadError, read_checkpoint  # noqa: E402
from .files import read_file  # noqa: E402

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


def read_by_mmengine(address: str, name: str, trust: bool) -> dict:
    """Read weights from an address that MMEngine knows and
    :func:`~.addresses.read_checkpoint` does not: the name of a model, such as
    `open-mmlab://MODEL`, or a file in one of its file systems.

    Arguments and errors are those of :func:`~.addresses.read_checkpoint`.
    """
    if address.startswith(tuple(TABLES)):
        return read_by_name(address, name, trust)
    try:
        with get_local_path(address) as path:
            return read_file(path, name, trust)
    except Exception as error:  # from any of MMEngine's file systems
        raise ValueError(
            f'{name}={address!r} cannot be read ({error}): {CHOICE}'
        ) from error


def read_by_name(address: str, name: str, trust: bool) -> dict:
    """Return weights that MMEngine knows by name; from mmcls, a classifier's
    backbone."""
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
        raise DownloadError(name, address, error.reason, error.place) from error
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
