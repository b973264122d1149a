"""Finds misspelled names."""

import difflib
import inspect
from collections.abc import Iterable

# Keys of a config that MMEngine and the tools read, besides the arguments of a runner.
_OPTIONAL_KEYS = (
    *('activation_checkpointing', 'compile', 'efficient_conv_bn_eval', 'strategy'),
    *('find_unused_parameters', 'model_wrapper_cfg', 'pretrained', 'runner_type'),
    *('sync_bn', 'tta_model', 'tta_pipeline'),
)
# A key that is this similar to a known one, and longer than these many letters, may be
# a misspelling: of 303 names in the configs of the three libraries none is.
_SIMILAR, _SHORT = 0.885, 7


def did_you_mean(name: str, names: Iterable[str], similar: float = 0.6) -> str:
    """The end of an error about an unknown name: the most similar known one, if any.

    Args:
        name (str): The unknown name.
        names (Iterable[str]): The known ones.
        similar (float): Least similarity, from 0 to 1.

    Returns:
        str: The suggestion, or ''.
    """
    likely = difflib.get_close_matches(name, names, 1, similar)
    return f'; did you mean {likely[0]!r}?' if likely else ''


def unknown_keys(keys: Iterable[str], more: Iterable[str] = ()) -> dict[str, str]:
    """Top-level keys of a config that neither MMEngine nor a tool reads.

    Configs also have variables. A key that is short, or that contains a known name, is
    taken for a variable.

    Args:
        keys (Iterable[str]): The keys.
        more (Iterable[str]): Known names besides those of MMEngine.

    Returns:
        dict[str, str]: The result of :func:`did_you_mean` by key.
    """
    from mmengine.runner import Runner  # it imports torch, which few tools need

    known = {*_OPTIONAL_KEYS, *inspect.signature(Runner).parameters, *more}
    long = [name for name in known if len(name) > _SHORT]
    return {
        key: ''
        if any(name in key for name in long)
        else did_you_mean(key, long, _SIMILAR)
        for key in sorted({*keys} - known)
    }
