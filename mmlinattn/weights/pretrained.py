"""Loads weights into one of our backbones, and accounts for every key.

A checkpoint is read, recognized, renamed, compared and loaded, each step in a module of
its own: `addresses`, `conversion`, `transfer`, and this one.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Optional

from torch import nn

from mmlinattn.utils.log import log
from mmlinattn.utils.names import inside, shortlist

from .addresses import read_checkpoint
from .conversion import OURS, PREFIX, name_weights
from .rows import StateDict
from .transfer import BLOCK, fit_backbone, fit_part


class Comparison(NamedTuple):
    """What of a checkpoint loads into a backbone and other parts of a model."""

    title: str  # the models that the checkpoint is from
    loaded: StateDict  # entries of the backbone
    unused: list[str]  # weights of the backbone
    replaced: list[str]  # attentions that the weights were not trained with
    parts: dict[str, StateDict]  # entries of other parts, by part
    others: dict[str, int]  # numbers of entries besides the backbone's, by part
    resized: tuple[str, ...] = ()  # tables of positions that have another size there
    adapted: tuple[str, ...] = ()  # convolutions of RGB that take other channels here


def load_pretrained(
    model: nn.Module,
    checkpoint: str,
    prefix: Optional[str] = None,
    initialize: Optional[Callable[[], None]] = None,
    parts: Optional[Mapping[str, nn.Module]] = None,
    name: str = 'checkpoint',
    earlier: Optional[Callable[[], Optional[Comparison]]] = None,
) -> None:
    """Load pretrained weights into a backbone, and log it.

    Official weights are recognized and converted. Weights of a plain
    model start a model with other attentions: entries that fit are loaded, the others
    keep their initial values, and a warning names both.

    Args:
        model: One of our backbones.
        checkpoint: A path, `file://PATH`, `http(s)://...` or `timm://MODEL`.
        prefix: Prefix of the backbone's keys. Default: 'backbone.' if there are such
            keys, none otherwise. Official weights need none.
        initialize: Gives the model its initial values; called only if some of them
            stay.
        parts: Other parts of a classifier to load, by name, such as its `head`. They
            must fit as a whole.
        name: The user's name of the checkpoint, for error messages.
        earlier: Returns the result of an earlier :func:`compare`, or None.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file cannot be read, or holds an incomplete official model.
        KeyError: If parameters are missing, have other shapes, as in another family's
            checkpoint, or are no numbers.
        ConnectionError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    parts = parts or {}
    comparison = earlier() if earlier else None
    if comparison is None:
        comparison = compare(model, checkpoint, name, prefix, parts)
    if initialize is not None and comparison.loaded.keys() < model.state_dict().keys():
        initialize()
    model.load_state_dict(comparison.loaded, strict=False)
    for key, part in parts.items():
        part.load_state_dict(comparison.parts[key])
    report(model, comparison, checkpoint)


def compare(
    model: nn.Module,
    checkpoint: str,
    name: str,
    prefix: Optional[str] = None,
    parts: Optional[Mapping[str, nn.Module]] = None,
) -> Comparison:
    """Read a checkpoint, and compare it with a model, which does not change.

    Arguments and errors are those of :func:`load_pretrained`; ``name`` is the user's
    name of the checkpoint.
    """
    content = read_checkpoint(checkpoint, name)
    return compare_content(model, content, f'{name}={checkpoint!r}', prefix, parts)


def compare_content(
    model: nn.Module,
    content: dict[str, Any],
    title: str,
    prefix: Optional[str] = None,
    parts: Optional[Mapping[str, nn.Module]] = None,
) -> Comparison:
    """Compare what a checkpoint contains with a model, as :func:`compare` does; errors
    begin with the title."""
    try:
        weights, family, origin = name_weights(content, prefix)
        start = fit_backbone(model, inside(weights, PREFIX), family, origin)
        parts_weights = {
            key: fit_part(key, part, inside(weights, f'{key}.'))
            for key, part in (parts or {}).items()
        }
    except (KeyError, ValueError) as error:
        raise type(error)(f'{title}: {error.args[0]}') from error
    return Comparison(
        title=family.title if family else OURS,
        loaded=start.loaded,
        unused=start.unused,
        replaced=start.replaced,
        parts=parts_weights,
        others=Counter(
            key.partition('.')[0] for key in weights if not key.startswith(PREFIX)
        ),
        resized=start.resized,
        adapted=start.adapted,
    )


def report(model: nn.Module, comparison: Comparison, checkpoint: str) -> None:
    """Log what was loaded, in one line; a warning, if it is of another model."""
    replaced = comparison.replaced
    deeper = not replaced and any(BLOCK.match(name) for name in comparison.unused)
    lines = describe_entries(model, comparison, checkpoint)
    if deeper:
        lines.append('they are of a deeper model')
    if comparison.resized:
        lines.append(
            f'{shortlist(comparison.resized)}: these tables of positions were learned '
            'on images of another size, and are resized to img_size, then to each '
            'image; with their size as img_size of the backbone, they are resized once'
        )
    lines += comparison.adapted
    if replaced:
        kinds = {type(model.get_submodule(name)).__name__ for name in replaced}
        lines.append(
            f'not trained with {" and ".join(sorted(kinds))}, which {len(replaced)} '
            f'blocks have here, such as {replaced[0]}'
        )
    is_other = replaced or deeper or comparison.resized or comparison.adapted
    level = logging.WARNING if is_other else logging.INFO
    log('; '.join(lines), level)


def describe_entries(
    model: nn.Module, comparison: Comparison, checkpoint: str
) -> list[str]:
    """Return how many entries load, which keep their initial values, and which are not
    used: all of them, where attentions are others."""
    names = list(model.state_dict())
    initial = [key for key in names if key not in comparison.loaded]
    unused = comparison.unused + [
        f'{part} ({count} entries)'
        for part, count in comparison.others.items()
        if part not in comparison.parts
    ]
    begin = 'STARTS from' if comparison.replaced else 'loaded from'
    names_of: Callable = list if comparison.replaced else shortlist
    return [
        f'{type(model).__name__}: {begin} {comparison.title} in {checkpoint}: '
        f'{len(comparison.loaded)} of {len(names)} entries',
        f'these keep their initial values: {names_of(initial) or "none"}',
        f'not used: {names_of(unused) or "none"}',
    ]
