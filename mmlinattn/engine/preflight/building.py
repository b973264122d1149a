"""Builds the model of a config, and puts a key of the config before errors."""

import copy
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import DownloadError

from .maps import check_channels
from .recognizers import check_recognizer

# Errors of the libraries for a config that can't be built, or can't run at a size.
LIBRARY_ERRORS = (
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


@contextmanager
def error_in(cfg: Config, key: str) -> Iterator[None]:
    """Builds in a config's scope, without the libraries' prints, and puts a key of the
    config before their errors; a fault of ours stays as it is."""
    scope = DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmengine')
    try:
        with quiet(), redirect_stdout(io.StringIO()), scope:
            yield
    except DownloadError:  # of weights that a model reads when it is built
        raise
    except LIBRARY_ERRORS as error:
        if is_own_fault(error):
            raise
        raise ValueError(f'{key}: {type(error).__name__}: {error}') from error


def build_model(cfg: Config) -> nn.Module:
    """The model of a config, on the CPU, without its pretrained weights; a ValueError
    if it can't be built, or its parts do not fit each other."""
    with error_in(cfg, 'model'):
        model = copy.deepcopy(cfg.model)
        if not isinstance(model, nn.Module):
            if cfg.get('data_preprocessor') is not None:
                # building writes into it
                preprocessor = copy.deepcopy(cfg.data_preprocessor)
                model.setdefault('data_preprocessor', preprocessor)
            model = MODELS.build(model)
    check_channels(model)
    check_recognizer(model)
    return model
