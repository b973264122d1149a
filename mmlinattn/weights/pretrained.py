"""Loads weights into one of our backbones, and accounts for every key.

A checkpoint is read, recognized, renamed, compared and loaded, by one function each.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Optional

from mmengine.logging import print_log
from torch import nn

from .addresses import read_checkpoint
from .conversion import (
    OURS,
    PREFIX,
    convert,
    find_state_dict,
    recognize,
    shortlist,
    without_wrappers,
)
from .families import FAMILIES, Family
from .fitting import Fit, fit_weights
from .naming import COMMAND
from .rows import StateDict, inside
from .transfer import (
    BLOCK,
    is_early_norm,
    is_scaling_vector,
    may_differ,
    replaced_attentions,
    split_lepe,
)

LIGHTNING = 'model.'  # its prefix
POSITIONS = 'pos_embed.table'
RGB = 3  # channels


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


class Start(NamedTuple):
    """What a backbone starts from."""

    loaded: StateDict
    unused: list[str]
    replaced: list[str]


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
    try:
        state_dict, recognized = recognize_backbone(content, prefix)
        weights, family = rename(state_dict, recognized, content.get('meta'))
        origin = (
            f'it has {shortlist(state_dict)}, {describe_origin(recognized, family)}'
        )
        entries, adapted = adapt_channels(model, inside(weights, PREFIX))
        start = fit_backbone(model, entries, family, origin)
        parts_weights = {
            key: fit_part(key, part, inside(weights, f'{key}.'))
            for key, part in (parts or {}).items()
        }
    except (KeyError, ValueError) as error:
        raise type(error)(f'{name}={checkpoint!r}: {error.args[0]}') from error
    return Comparison(
        title=family.title if family else OURS,
        loaded=start.loaded,
        unused=start.unused,
        replaced=start.replaced,
        parts=parts_weights,
        others=Counter(
            key.partition('.')[0] for key in weights if not key.startswith(PREFIX)
        ),
        resized=resized_tables(start.loaded, entries),
        adapted=adapted,
    )


def describe_origin(recognized: Optional[str], family: Optional[Family]) -> str:
    """What a checkpoint is, for the end of an error message."""
    if family:
        return f'weights of {family.title}'
    if recognized:
        return f'weights of {OURS}'
    known = '; '.join(f'{family.title} ({family.code})' for family in FAMILIES.values())
    return (
        f'not recognized: mmlinattn takes checkpoints of mmlinattn and of {known}; '
        f'see {COMMAND} --help'
    )


def resized_tables(loaded: StateDict, entries: StateDict) -> tuple[str, ...]:
    """Names of tables of positions that have another size in the checkpoint."""
    return tuple(
        key
        for key, table in loaded.items()
        if key.endswith(POSITIONS) and table.shape != entries[key].shape
    )


def recognize_backbone(
    content: dict, prefix: Optional[str] = None
) -> tuple[StateDict, Optional[str]]:
    """The state dict in a checkpoint, without the prefixes of programs, and what
    :func:`recognize` says of it."""
    state_dict, _ = find_state_dict(content)
    recognized = recognize(state_dict)
    if not prefix and not recognized and inside(state_dict, LIGHTNING):
        prefix = LIGHTNING
    if prefix and recognized not in FAMILIES:  # they have no such prefix
        inner = inside(state_dict, f'{prefix.rstrip(".")}.')
        state_dict = without_wrappers(inner)
        recognized = recognize(state_dict)
    return state_dict, recognized


def rename(
    state_dict: StateDict, recognized: Optional[str], meta: Any
) -> tuple[StateDict, Optional[Family]]:
    """Weights by our names, with every key of an official model accounted for, and
    their family, which the metadata of converted weights name."""
    if recognized in FAMILIES:
        return convert(state_dict, recognized), FAMILIES[recognized]
    if not inside(state_dict, PREFIX):
        state_dict = {f'{PREFIX}{key}': entry for key, entry in state_dict.items()}
    family = meta.get('family') if isinstance(meta, dict) else None
    return state_dict, FAMILIES.get(str(family))


def adapt_channels(
    model: nn.Module, weights: StateDict
) -> tuple[StateDict, tuple[str, ...]]:
    """Weights whose convolutions of RGB images take the model's number of channels, and
    what was done to which.

    A gray channel gets the sum of the three, so that it does what a gray image in RGB
    does; others get the three in turn, scaled by 3 of their number, so that their sum
    keeps about its size.
    """
    adapted, notes = dict(weights), []
    for key, ours in model.state_dict().items():
        theirs = weights.get(key)
        if theirs is None or theirs.dim() != 4 or theirs.size(1) != RGB:
            continue
        channels = ours.size(1) if ours.dim() == 4 else RGB
        if channels == RGB or theirs[:, :1].shape != ours[:, :1].shape:
            continue
        if channels == 1:
            adapted[key] = theirs.sum(1, keepdim=True)
            notes.append(f'{key} of RGB images is summed for one channel')
        else:
            order = [channel % RGB for channel in range(channels)]
            adapted[key] = theirs[:, order] * (RGB / channels)
            notes.append(
                f'{key} of RGB images is repeated for {channels} channels, times '
                f'{RGB}/{channels}'
            )
    return adapted, tuple(notes)


def fit_backbone(
    model: nn.Module, weights: StateDict, family: Optional[Family], origin: str
) -> Start:
    """The weights that a backbone starts from, names of those without a use, and of
    attentions that they were not trained with. A module loads whole or not at all. A
    KeyError says what they are, their ``origin``, if they do not fit this backbone."""
    replaced = []
    if family:  # else it is not known what the plain model's attentions are
        replaced = replaced_attentions(model, weights, family.attentions)
    if replaced:
        weights = split_lepe(weights, model.state_dict())
    fitted = fit_weights(model, weights)
    # a classifier may norm no map at all, such as RAVLT
    normed = any(key.startswith('norm') for key in weights)
    missing = missing_parameters(fitted, model.num_stages + (not normed))
    loaded = entries_of_whole_modules(fitted)
    faults = backbone_faults(fitted, missing, loaded, bool(replaced))
    if faults:
        kind = type(model).__name__
        raise KeyError(f'it does not fit this {kind}: {"; ".join(faults)}; {origin}')
    unused = [key for key in weights if key not in loaded]
    return Start(loaded=loaded, unused=unused, replaced=replaced)


def entries_of_whole_modules(fitted: Fit) -> StateDict:
    """Entries that load, without those of modules that have another shape there."""
    left_out = {key.rpartition('.')[0] for key in fitted.mismatched}
    return {
        key: entry
        for key, entry in fitted.state_dict.items()
        if key.rpartition('.')[0] not in left_out
    }


def missing_parameters(fitted: Fit, num_stages: int) -> list[str]:
    """Names of parameters that a checkpoint lacks, but for scaling vectors, which start
    as the identity, and norms of maps before the last one."""
    return [
        key
        for key in fitted.missing
        if not is_scaling_vector(key) and not is_early_norm(key, num_stages)
    ]


def backbone_faults(
    fitted: Fit, missing: list[str], loaded: StateDict, other_attentions: bool
) -> list[str]:
    """Why weights do not fit a backbone. With other attentions than the weights', these
    may differ and lack parameters, as long as a block is common."""
    shapes = [
        f'{key} {shapes}'
        for key, shapes in fitted.mismatched.items()
        if not (other_attentions and may_differ(key))
    ]
    faults = []
    if shapes:
        faults.append(f'{len(shapes)} shapes differ, such as {shapes[0]}')
    if fitted.broken:
        faults.append(f'NaN or infinite values in {shortlist(fitted.broken)}')
    if missing and not other_attentions:
        faults.append(f'lacks {len(missing)} parameters, such as {missing[:3]}')
    if other_attentions and not any(BLOCK.match(key) for key in loaded):
        faults.append('the two models have no block in common')
    return faults


def fit_part(name: str, part: nn.Module, weights: StateDict) -> StateDict:
    """The weights of a whole part of a classifier; a KeyError if they are missing or
    have other shapes."""
    fitted = fit_weights(part, weights)
    if fitted.missing or fitted.mismatched:
        raise KeyError(
            f'it has no {name} for this {type(part).__name__}: {fitted.describe()}; '
            'default_hooks.pretrained.head=False starts the backbone alone'
        )
    return fitted.state_dict


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
    print_log('; '.join(lines), 'current', level)


def describe_entries(
    model: nn.Module, comparison: Comparison, checkpoint: str
) -> list[str]:
    """How many entries load, which keep their initial values, and which are not used:
    all of them, where attentions are others."""
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
