"""Finds misspelled top-level keys of configs, which nothing would read."""

import difflib
import inspect
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
# A key that is this similar to a known one, and longer than these many letters, may be
# a misspelling: of 303 names in the configs of the three libraries none is.
_SIMILAR, _SHORT = 0.885, 7


def did_you_mean(name: str, names: Iterable[str], similar: float = 0.6) -> str:
    """The end of an error about an unknown name: the known one that it is like, if any.

    Args:
        name (str): The unknown name.
        names (Iterable[str]): The known ones.
        similar (float): How alike they must be at least, from 0 to 1.

    Returns:
        str: The words, or nothing.
    """
    likely = difflib.get_close_matches(name, names, 1, similar)
    return f'; did you mean {likely[0]!r}?' if likely else ''


def _known_keys() -> set[str]:
    """Top-level keys that something reads."""
    from mmengine.runner import Runner  # it imports torch, which few tools need

    return {*_OPTIONAL_KEYS, *inspect.signature(Runner).parameters}


def misspelled_keys(keys: Iterable[str]) -> dict[str, str]:
    """Names that are nearly those of keys that something reads.

    Configs have variables of their own. A known name with something before or after
    it is one, and so is a short one.

    Args:
        keys (Iterable[str]): Top-level keys of a config.

    Returns:
        dict[str, str]: By key, :func:`did_you_mean`.
    """
    known = _known_keys()
    long = [name for name in known if len(name) > _SHORT]
    unknown = {*keys} - known
    own = (key for key in unknown if not any(name in key for name in long))
    hints = {key: did_you_mean(key, long, _SIMILAR) for key in sorted(own)}
    return {key: hint for key, hint in hints.items() if hint}


def unknown_options(cfg: Config, cfg_options: Optional[dict[str, Any]]) -> list[str]:
    """Overrides that neither the config nor MMEngine knows.

    Args:
        cfg (Config): The config, before anything is overridden.
        cfg_options (dict, optional): What to override, by dotted key.

    Returns:
        list[str]: Their keys; code of the user's own may read them.

    Raises:
        KeyError: If the first part of one is nearly that of a known key.
    """
    known = {*cfg, *_known_keys()}
    unknown = [k for k in cfg_options or {} if k.partition('.')[0] not in known]
    for key in unknown:
        first = key.partition('.')[0]
        hint = did_you_mean(first, known, 0.8)
        if hint and not any(name in first for name in known if len(name) > _SHORT):
            raise KeyError(
                f'--cfg-options {key}: the config has no {first!r}, and nothing '
                f'would read it{hint}'
            )
    return unknown
