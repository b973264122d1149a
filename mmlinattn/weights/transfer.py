"""What a backbone starts from: the weights that fit it, also those of a plain model
with another attention, of images with other channels, or of a deeper model.

Of a plain model, norms, FFNs and the projections to queries, keys and values stay;
modules whose shapes differ keep their initial values. Blocks are matched by their
number: those that only one of the two models has are not used, or keep their initial
values.

The convolutions of LePE are split differently in CSWin and in ELFATT's CSWin:

stage  CSWin                          ELFATT's CSWin
1, 2   upright stripes, flat stripes  global half, local half
3      the same                       whole map, halves, whole map, halves, ...
4      whole map                      whole map

The global half starts with the LePE of upright stripes, the local half with that of
flat ones, and attention over the whole map of stage 3 with both. In the opposite
direction, a LePE of all channels is cut in halves.
"""

import re
from typing import NamedTuple, Optional

import torch
from torch import nn

from mmlinattn.utils.names import inside, shortlist

from .families import Family
from .fitting import Fit, fit_weights
from .rows import Keys, StateDict

BLOCK = re.compile(r'(?:stages\.\d+\.)?blocks\.\d+\.')
EMBEDDING = re.compile(r'stages\.\d+\.embedding\.')
HALF = re.compile(r'\.lepe\.([01])\.')
POSITIONS = 'pos_embed.table'
RGB = 3  # channels
SCALING_VECTORS = ('omega', 'dc_scale', 'hc_scale')


class Start(NamedTuple):
    """What a backbone starts from."""

    loaded: StateDict
    unused: list[str]
    replaced: list[str]
    resized: tuple[str, ...]  # tables of positions that have another size there
    adapted: tuple[str, ...]  # what was done to convolutions of RGB


def adapt_channels(
    model: nn.Module, weights: StateDict
) -> tuple[StateDict, tuple[str, ...]]:
    """Return weights whose convolutions of RGB images take the model's number of
    channels, and what was done to which.

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
    """Return the weights that a backbone starts from, names of those without a use, of
    attentions that they were not trained with, and of what was changed. A module loads
    whole or not at all. A KeyError says what they are, their ``origin``, if they do not
    fit this backbone."""
    entries, adapted = adapt_channels(model, weights)
    weights, replaced = entries, []
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
    return Start(
        loaded=loaded,
        unused=[key for key in weights if key not in loaded],
        replaced=replaced,
        resized=resized_tables(loaded, entries),
        adapted=adapted,
    )


def entries_of_whole_modules(fitted: Fit) -> StateDict:
    """Return entries that load, without those of modules that have another shape
    there."""
    left_out = {key.rpartition('.')[0] for key in fitted.mismatched}
    return {
        key: entry
        for key, entry in fitted.state_dict.items()
        if key.rpartition('.')[0] not in left_out
    }


def missing_parameters(fitted: Fit, num_stages: int) -> list[str]:
    """Return names of parameters that a checkpoint lacks, but for scaling vectors,
    which start as the identity, and norms of maps before the last one."""
    return [
        key
        for key in fitted.missing
        if not is_scaling_vector(key) and not is_early_norm(key, num_stages)
    ]


def backbone_faults(
    fitted: Fit, missing: list[str], loaded: StateDict, other_attentions: bool
) -> list[str]:
    """Return why weights do not fit a backbone. With other attentions than the
    weights', these may differ and lack parameters, as long as a block is common."""
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
    """Return the weights of a whole part of a classifier; a KeyError if they are
    missing or have other shapes."""
    fitted = fit_weights(part, weights)
    if fitted.missing or fitted.mismatched:
        raise KeyError(
            f'it has no {name} for this {type(part).__name__}: {fitted.describe()}; '
            'default_hooks.pretrained.head=False starts the backbone alone'
        )
    return fitted.state_dict


def resized_tables(loaded: StateDict, entries: StateDict) -> tuple[str, ...]:
    """Return names of tables of positions that have another size in the checkpoint."""
    return tuple(
        key
        for key, table in loaded.items()
        if key.endswith(POSITIONS) and table.shape != entries[key].shape
    )


def split_lepe(weights: StateDict, names: Keys) -> StateDict:
    """Return weights with the convolutions of LePE that a model with these names
    has."""
    made, used = {}, set()
    for key in names:
        name = key.replace('.global_lepe.', '.lepe.0.')
        name = name.replace('.local_lepe.', '.lepe.1.')
        whole = HALF.sub('.lepe.', name)
        halves = [name.replace('.lepe.', f'.lepe.{half}.') for half in (0, 1)]
        if name in weights:
            used.add(name)
            made[key] = weights[name]
        elif whole in weights:
            used.add(whole)
            made[key] = weights[whole].chunk(2)[int(HALF.findall(name)[0])]
        elif halves[0] in weights:
            used.update(halves)
            made[key] = torch.cat([weights[half] for half in halves])
    return {**made, **{key: entry for key, entry in weights.items() if key not in used}}


def may_differ(key: str) -> bool:
    """Return True for an entry whose shape depends on the attention, or on kernels of
    an embedding."""
    return '.attn.' in key or bool(EMBEDDING.match(key))


def is_scaling_vector(key: str) -> bool:
    """Return True for a parameter that is the identity at zero."""
    return key.rpartition('.')[2] in SCALING_VECTORS


def is_early_norm(key: str, num_stages: int) -> bool:
    """Return True for a parameter of the norm of a map before the last one.

    A classifier, and so its checkpoint, has only the norm of the last map.
    """
    match = re.match(r'norm(\d+)\.', key)
    return match is not None and int(match[1]) < num_stages - 1


def replaced_attentions(
    model: torch.nn.Module, weights: StateDict, equivalent: Keys
) -> list[str]:
    """Return names of a model's attentions that differ from those of the plain model.

    ``equivalent`` are the classes that are the plain model's attentions. Blocks that
    the plain model lacks are skipped.
    """

    def own(keys: Keys) -> set[str]:
        return {key for key in keys if not is_scaling_vector(key)}

    replaced = []
    for name, module in model.named_modules():
        theirs = inside(weights, f'{name}.') if name.endswith('.attn') else {}
        same = type(module).__name__ in equivalent
        if theirs and not (same and own(theirs) == own(module.state_dict())):
            replaced.append(name)
    return replaced
