"""Finds misspelled top-level keys of configs, which nothing would read."""

import difflib
import inspect
import re
from collections.abc import Iterable
from typing import Any, Optional

from mmengine.config import Config

# Keys of a config that MMEngine and the tools read, besides the arguments of a runner.
_OPTIONAL_KEYS = (
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
# A key that is this similar to a known one, and longer than these many letters, is a
# misspelling: of 303 names in the configs of the three libraries none is.
_SIMILAR, _SHORT = 0.885, 7


def _known_keys() -> set[str]:
    """Top-level keys that something reads."""
    from mmengine.runner import Runner  # it imports torch, which few tools need

    return {*_OPTIONAL_KEYS, *inspect.signature(Runner).parameters}


def check_keys(keys: Iterable[str], path: str) -> None:
    """Raises an error for a misspelled top-level key, which nothing would read.

    Configs may have variables of their own. Only a name that is nearly a known one is
    an error; a known name with something appended is not.

    Args:
        keys (Iterable[str]): Top-level keys of a config.
        path (str): Its path.

    Raises:
        KeyError: If there is such a key, with the likely one.
    """
    known = _known_keys()
    long = [name for name in known if len(name) > _SHORT]
    for key in keys:
        likely = difflib.get_close_matches(key, long, 1, _SIMILAR)
        if key in known or not likely or re.match(rf'{likely[0]}[_\d]', key):
            continue
        raise KeyError(
            f'config={path!r} has {key!r}, which nothing would read; did you mean '
            f'{likely[0]!r}?'
        )


def check_cfg_options(cfg: Config, cfg_options: Optional[dict[str, Any]]) -> None:
    """Raises an error for overrides that nothing would read.

    Args:
        cfg (Config): The config, before anything is overridden.
        cfg_options (dict, optional): What to override, by dotted key.

    Raises:
        KeyError: If a key's first part is neither in the config nor known to
            MMEngine, with the likely one.
    """
    known = {*cfg, *_known_keys()}
    for key in cfg_options or {}:
        first = key.partition('.')[0]
        if first not in known:
            likely = difflib.get_close_matches(first, known, 1)
            hint = f'; did you mean {likely[0]!r}?' if likely else ''
            raise KeyError(
                f'--cfg-options {key}: the config has no {first!r}, and nothing '
                f'would read it{hint}'
            )
