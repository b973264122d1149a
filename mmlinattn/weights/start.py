"""Starts a model with another attention from a plain model's weights.

If another attention replaces a family's own, its modules differ; norms, FFNs and the
projections to queries, keys and values stay. Blocks are matched by their number. If
depths differ, blocks after the plain model's last one keep their initial values, and
the plain model's blocks after our last one are not used. An embedding with other
kernels keeps its initial values.

ELFATT's CSWin takes more. Only its attentions, between the projections, and the
convolutions of LePE are split differently:

stage  CSWin                          ELFATT's CSWin
1, 2   upright stripes, flat stripes  global half, local half
3      the same                       whole map, halves, whole map, halves, ...
4      whole map                      whole map

CSWin has upright stripes in the first half of the channels of queries, keys and
values, flat ones in the last; ELFATT with equal halves (split_ratio=0.5) has the
global half first, the local half last, and each half as many heads as CSWin has. So
the projections are loaded unchanged, the global half starts with the LePE of upright
stripes, the local half with that of flat ones, and attention over the whole map of
stage 3 with both. In the opposite direction, a LePE of all channels is cut in halves.
"""

import re
from typing import NamedTuple, Optional

import torch

from .fitting import fit_weights
from .rows import Keys, StateDict, inside, stacked

BLOCK = re.compile(r'(?:stages\.\d+\.)?blocks\.\d+\.')
EMBEDDING = re.compile(r'stages\.\d+\.embedding\.')
HALF = re.compile(r'\.lepe\.([01])\.')
SCALING_VECTORS = ('omega', 'dc_scale', 'hc_scale')


class Source(NamedTuple):
    """A tensor of the plain model by its name, or the first or last half of it."""

    name: str
    half: Optional[int] = None

    def tensor(self, weights: StateDict) -> torch.Tensor:
        """The tensor itself."""
        whole = weights[self.name]
        return whole if self.half is None else whole.chunk(2)[self.half]


class StartPlan(NamedTuple):
    """The source of each parameter of a model."""

    # by our name: tensors, or halves of them, to join along their first axis
    taken: dict[str, list[Source]]
    # our parameters that keep their initial values, and tensors that are not used
    initial: list[str]
    unused: list[str]

    def apply(self, weights: StateDict) -> StateDict:
        """The state dict to load, from the tensors that :func:`plan_start` saw."""
        return {
            key: stacked([source.tensor(weights) for source in sources])
            for key, sources in self.taken.items()
        }

    @property
    def recut(self) -> list[str]:
        """Parameters that are split differently from the plain model's."""
        return [key for key, x in self.taken.items() if x != [Source(key)]]


def find_sources(keys: Keys, local: Keys) -> dict[str, list[Source]]:
    """The plain model's parameters that each parameter of another model starts from."""
    found: dict[str, list[Source]] = {}
    for key in keys:
        name = key.replace('.global_lepe.', '.lepe.0.')
        name = name.replace('.local_lepe.', '.lepe.1.')
        halves = [name.replace('.lepe.', f'.lepe.{half}.') for half in (0, 1)]
        whole = HALF.sub('.lepe.', name)
        if whole in local and name not in local:
            (half,) = HALF.findall(name)
            found[key] = [Source(whole, int(half))]
            continue
        names = [name] if name in local else halves
        found[key] = [Source(name) for name in names if name in local]
    return found


def plan_start(model: torch.nn.Module, local: StateDict) -> StartPlan:
    """Plan how a plain model's backbone, by our names, starts another model.

    A module is taken whole or not at all.

    Raises:
        ValueError: If norms or FFNs have other sizes, or the two have no block in
            common.
    """
    names = list(model.state_dict())
    sources = {key: x for key, x in find_sources(names, local).items() if x}
    fitted = fit_weights(model, StartPlan(sources, [], []).apply(local))
    wrong = [
        f'{key}: {shapes}'
        for key, shapes in fitted.mismatched.items()
        if '.attn.' not in key and not EMBEDDING.match(key)
    ]
    if wrong:
        raise ValueError(
            f'{len(wrong)} parameters have other shapes, such as {wrong[0]}'
        )
    left_out = {key.rpartition('.')[0] for key in fitted.mismatched}
    taken = {
        key: found
        for key, found in sources.items()
        if key.rpartition('.')[0] not in left_out
    }
    if not any(BLOCK.match(key) for key in taken):
        raise ValueError('the two models have no block in common')
    used = {source.name for found in taken.values() for source in found}
    return StartPlan(
        taken,
        [key for key in names if key not in taken],
        [name for name in local if name not in used],
    )


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
    model: torch.nn.Module, local: StateDict, attentions: Keys
) -> list[str]:
    """Names of a model's attentions that differ from those of the plain model.

    ``attentions`` are the classes equivalent to the plain model's attentions. Blocks
    that the plain model lacks are skipped.
    """

    def own(keys: Keys) -> set[str]:
        return {key for key in keys if not is_scaling_vector(key)}

    replaced = []
    for name, module in model.named_modules():
        theirs = inside(local, f'{name}.') if name.endswith('.attn') else {}
        same = type(module).__name__ in attentions
        if theirs and not (same and own(theirs) == own(module.state_dict())):
            replaced.append(name)
    return replaced
