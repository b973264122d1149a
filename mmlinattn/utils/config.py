"""Reads configs of mmdet, mmseg and mmpretrain, and our own."""

import inspect
import os.path as osp
import re
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Optional

import mmlinattn

mmlinattn.check_versions()

from mmengine.config import Config  # noqa: E402
from mmengine.config.utils import MODULE2PACKAGE  # noqa: E402
from mmengine.utils import get_installed_path  # noqa: E402

SCOPE = 'mmlinattn'
# libraries with models of their own
LIBRARIES = ('mmaction', 'mmdet', 'mmpose', 'mmpretrain', 'mmrotate', 'mmseg')
# keys that MMEngine and the tools read, besides the arguments of a runner
OPTIONAL_KEYS = (
    'activation_checkpointing',
    'compile',
    'efficient_conv_bn_eval',
    'find_unused_parameters',
    'model_wrapper_cfg',
    'pretrained',
    'runner_type',
    'strategy',
    'sync_bn',
    'tta_model',
    'tta_pipeline',
)


def wrapped_key(model: Any) -> str:
    """Return the key of the part of a model's config that a wrapper holds."""
    return 'detector' if model.get('detector') else 'model'


def core_of_config(model: Any) -> Any:
    """Return the part of a model's config that has the backbone, inside of wrappers.

    Raises:
        ValueError: If there is none.
    """
    while isinstance(model, dict) and 'backbone' not in model:
        model = model.get(wrapped_key(model))
    if not isinstance(model, dict):
        raise ValueError('its model has no backbone')
    return model


def register_config_scopes() -> None:
    """Make ``_base_ = 'mmlinattn::...'`` and ``'mmseg::...'`` resolve.

    MMEngine looks up a scope's package in a table. That table lacks mmlinattn, and
    finds mmseg in the distribution mmsegmentation only.
    """
    MODULE2PACKAGE.setdefault(SCOPE, SCOPE)
    try:
        distribution('mmsegmentation')
    except PackageNotFoundError:
        MODULE2PACKAGE['mmseg'] = 'mmseg'

    package = osp.dirname(osp.abspath(mmlinattn.__file__))
    installed = get_installed_path(SCOPE)
    # MMEngine asks pkg_resources where an editable install is
    asked = sys.modules.get('pkg_resources')
    if asked and osp.realpath(installed) != osp.realpath(package):
        asked.working_set.add(
            asked.Distribution(
                osp.dirname(package), project_name=SCOPE, version=mmlinattn.__version__
            ),
            replace=True,
        )


def load_config(
    path: str,
    cfg_options: Optional[dict[str, Any]] = None,
    warn: Callable[[str], object] = lambda text: None,
) -> Config:
    """Read a config of any of the libraries.

    ``cfg_options`` override values, by dotted key; ``warn`` takes warnings about those
    that nothing reads.

    Raises:
        FileNotFoundError: If the config or one that it inherits is missing.
        KeyError: If an override is misspelled.
        ValueError: If the config can't be read or take the overrides, or text takes the
            place of a number.
    """
    check_file('config', path)
    register_config_scopes()
    cfg = _read(path)
    _drop_scope(cfg._cfg_dict)
    if cfg_options:
        _check_overrides(cfg, cfg_options, warn)
        for key, value in cfg_options.items():
            _check_override(cfg, key, value, warn)
    try:
        cfg.merge_from_dict(cfg_options or {})
    except (AssertionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f'--cfg-options do not fit config={path!r}: {error}'
        ) from error
    return cfg


def _check_overrides(cfg: Config, names: Iterable[str], warn: Callable) -> None:
    """Raise a KeyError for a top-level key that is misspelled, and warn of others that
    nothing reads."""
    known = {*cfg, *OPTIONAL_KEYS}
    keys = {name.partition('.')[0] for name in names}
    if keys <= known:
        return
    from mmengine.runner import Runner  # it imports torch, which takes seconds

    known |= {*inspect.signature(Runner).parameters}
    for key in keys - known:
        text = f'--cfg-options {key}: neither the config nor MMEngine has such a key'
        likely = get_close_matches(key, known, 1, 0.8)
        if likely:
            raise KeyError(f'{text}; did you mean {likely[0]!r}?')
        warn(text)


def _check_override(cfg: Config, key: str, value: Any, warn: Callable) -> None:
    """Raise a ValueError for text that begins like a number, in place of a number, and
    warn of a new key that is probably one beside it; of parts that have a type, the
    options are known later."""
    node: Any = cfg._cfg_dict
    for part in key.split('.'):
        if isinstance(node, (list, tuple)) and part.isdecimal():
            node = node[int(part)] if int(part) < len(node) else None
            continue
        if not isinstance(node, dict):
            return
        if part not in node:
            likely = get_close_matches(part, node, 1, 0.8)
            if likely and node is not cfg._cfg_dict and 'type' not in node:
                text = 'is new in the config; did you mean'
                warn(f'--cfg-options {key}: {part!r} {text} {likely[0]!r}?')
            return
        node = node[part]
    is_number = isinstance(node, (int, float)) and not isinstance(node, bool)
    if is_number and isinstance(value, str) and re.match(r'[-+]?\.?\d', value):
        raise ValueError(
            f'--cfg-options {key}={value}: {value!r} is text, not a number as {node!r}'
        )


def _read(path: str) -> Config:
    """Read by MMEngine. A config is a program: reading it can raise any error."""
    try:
        return Config.fromfile(path)
    except FileNotFoundError as error:
        remedy = ''
        if osp.join(SCOPE, '.mim') in str(error):  # made by an installation
            remedy = f"; '{SCOPE}::' is for the installed package: pip install -e ."
        raise FileNotFoundError(
            f'config={path!r} inherits a missing config: {error}{remedy}'
        ) from error
    except Exception as error:
        text = f'{type(error).__name__}: {error}'
        raise ValueError(f'config={path!r} can not be read: {text}') from error


def _drop_scope(node: Any) -> None:
    """Remove scopes of inherited nodes: our configs name our own classes in full, and
    all others belong to the config's default scope, where MMEngine would not look for
    them. It passes every entry of ``collate_fn`` to the function."""
    if isinstance(node, dict):
        if node.get('_scope_') == SCOPE:
            del node['_scope_']
        if isinstance(node.get('collate_fn'), dict):
            node['collate_fn'].pop('_scope_', None)
        node = node.values()
    elif not isinstance(node, (list, tuple)):
        return
    for child in node:
        _drop_scope(child)


def library_of(cfg: Config) -> str:
    """Return the library that a config is for: its default scope or, without one, as in
    configs of classes, the library of its model's class; 'mmengine' for none."""
    scope = cfg.get('default_scope') or 'mmengine'
    if scope != 'mmengine' or not isinstance(cfg.get('model'), dict):
        return scope
    kind = cfg.model.get('type')
    bases = [base.__module__ for base in getattr(kind, '__mro__', ())] or [str(kind)]
    packages = [name.partition('.')[0] for name in bases]
    return next((name for name in packages if name in LIBRARIES), scope)


def check_file(name: str, path: str) -> None:
    """Raise a FileNotFoundError that names the argument, if a path has no file.
    MMEngine checks addresses."""
    if '://' not in path and not osp.isfile(osp.expanduser(path)):
        raise FileNotFoundError(f'{name}={path!r}: there is no such file')
