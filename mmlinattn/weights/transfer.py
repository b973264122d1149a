"""What a model with another attention takes from a plain model's weights.

Norms, FFNs and the projections to queries, keys and values stay; modules whose shapes
differ keep their initial values. Blocks are matched by their number: those that only
one of the two models has are not used, or keep their initial values.

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

import torch

from .rows import Keys, StateDict, inside

BLOCK = re.compile(r'(?:stages\.\d+\.)?blocks\.\d+\.')
EMBEDDING = re.compile(r'stages\.\d+\.embedding\.')
HALF = re.compile(r'\.lepe\.([01])\.')
SCALING_VECTORS = ('omega', 'dc_scale', 'hc_scale')


def split_lepe(weights: StateDict, names: Keys) -> StateDict:
    """Weights with the convolutions of LePE that a model with these names has."""
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
    """True for an entry whose shape depends on the attention, or on kernels of an
    embedding."""
    return '.attn.' in key or bool(EMBEDDING.match(key))


def is_scaling_vector(key: str) -> bool:
    """True for a parameter that is the identity at zero."""
    return key.rpartition('.')[2] in SCALING_VECTORS


def is_early_norm(key: str, num_stages: int) -> bool:
    """True for a parameter of the norm of a map before the last one.

    A classifier, and so its checkpoint, has only the norm of the last map.
    """
    match = re.match(r'norm(\d+)\.', key)
    return match is not None and int(match[1]) < num_stages - 1


def replaced_attentions(
    model: torch.nn.Module, weights: StateDict, equivalent: Keys
) -> list[str]:
    """Names of a model's attentions that differ from those of the plain model.

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
