"""Builds the model of a config, and puts a key of the config before errors."""

import copy
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.log import quiet
from mmlinattn.utils.options import explain, is_in
from mmlinattn.weights import DownloadError

from .maps import check_channels, check_levels
from .recognizers import check_recognizer
from .registries import scope_of

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

# keys that are built with another one
BESIDE = dict(model=('data_preprocessor',))


@contextmanager
def error_in(cfg: Config, key: str) -> Iterator[None]:
    """Build in a config's scope, without the libraries' prints, and put a key of the
    config before their errors, or the likely name of what is misspelled; a fault of
    ours stays as it is."""
    try:
        with quiet(), redirect_stdout(io.StringIO()), scope_of(cfg):
            yield
    except DownloadError:  # of weights that a model reads when it is built
        raise
    except LIBRARY_ERRORS as error:
        nodes = {part: cfg.get(part) for part in (key, *BESIDE.get(key, ()))}
        if is_own_fault(error) and not any(is_in(error, x) for x in nodes.values()):
            raise
        with quiet(), scope_of(cfg):
            texts = [explain(error, part, node) for part, node in nodes.items()]
        text = next(filter(None, texts), f'{key}: {type(error).__name__}: {error}')
        raise ValueError(text) from error


def build_model(cfg: Config) -> nn.Module:
    """Return the model of a config, on the CPU, without its pretrained weights; a
    ValueError if it can't be built, or its parts do not fit each other."""
    with error_in(cfg, 'model'):
        model = copy.deepcopy(cfg.model)
        if not isinstance(model, nn.Module):
            if cfg.get('data_preprocessor') is not None:
                # building writes into it
                preprocessor = copy.deepcopy(cfg.data_preprocessor)
                model.setdefault('data_preprocessor', preprocessor)
            model = MODELS.build(model)
    with inner_keys(cfg.model):
        check_channels(core_of(model))
    check_recognizer(model)
    return model


def check_strides(cfg: Config, model: nn.Module, warn: Callable[[str], object]) -> None:
    """Compare the strides of a detector's maps with the levels of its head: see
    :func:`check_levels`."""
    with inner_keys(cfg.model):
        check_levels(core_of(model), lambda text: warn(inner_text(cfg.model, text)))


def core_of(model: Any) -> Any:
    """Return the detector inside of a model that has no backbone itself, such as the
    student of one with a teacher, or that of a tracker; otherwise the model."""
    if getattr(model, 'backbone', None) is None and isinstance(model, nn.Module):
        for part in model.children():
            if isinstance(getattr(part, 'backbone', None), nn.Module):
                return part
    return model


def predicting_part(model: Any) -> Any:
    """Return the model that predicts a photo: of a student and a teacher the one that
    their options name, the detector of a tracker; otherwise the model."""
    options = getattr(model, 'semi_test_cfg', None)
    if options is None:
        return core_of(model)
    return getattr(model, options.get('predict_on', 'teacher'), model)


@contextmanager
def inner_keys(model: Any) -> Iterator[None]:
    """Put the key of a detector inside of a model's config into errors on its parts."""
    try:
        yield
    except ValueError as error:
        raise ValueError(inner_text(model, str(error))) from error


def inner_text(model: Any, text: str) -> str:
    """Return a text on a model's parts, with the keys of the detector inside of it."""
    if not isinstance(model, dict) or 'backbone' in model:
        return text
    inside = (
        key
        for key, part in model.items()
        if isinstance(part, dict) and 'backbone' in part
    )
    key = next(inside, None)
    return text if key is None else re.sub(r'\bmodel\.', f'model.{key}.', text)
