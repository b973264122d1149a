"""Starts a model with another attention from a plain model's weights.

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


class Transfer(NamedTuple):
    """The source of each entry of a model.

    Attributes:
        sources: By our name: tensors, or halves of them, to join along their first
            axis.
        initial: Entries that keep their initial values.
        mismatched: Entries whose sources have another shape, and both shapes.
        unused: Tensors without a use.
        broken: Entries with NaN or infinite values.
    """

    sources: dict[str, list[Source]]
    initial: list[str]
    mismatched: dict[str, str]
    unused: list[str]
    broken: list[str]

    def apply(self, weights: StateDict) -> StateDict:
        """The state dict to load, from the tensors that :func:`plan_transfer` saw."""
        return join(self.sources, weights)

    @property
    def split_differently(self) -> list[str]:
        """Entries that are made of parts of tensors, or of several."""
        return [key for key, x in self.sources.items() if x != [Source(key)]]


def join(sources: dict[str, list[Source]], weights: StateDict) -> StateDict:
    """The tensors that are made of others, or of halves of them."""
    return {
        key: stacked([source.tensor(weights) for source in parts])
        for key, parts in sources.items()
    }


def plan_transfer(model: torch.nn.Module, weights: StateDict) -> Transfer:
    """Plan how the weights of a backbone, by our names, start a model.

    A module is taken whole or not at all.
    """
    names = list(model.state_dict())
    found = {key: find_sources(key, weights) for key in names}
    sources = {key: x for key, x in found.items() if x}
    fitted = fit_weights(model, join(sources, weights))
    left_out = {key.rpartition('.')[0] for key in fitted.mismatched}
    sources = {k: x for k, x in sources.items() if k.rpartition('.')[0] not in left_out}
    used = {source.name for x in sources.values() for source in x}
    return Transfer(
        sources,
        [key for key in names if key not in sources],
        fitted.mismatched,
        [name for name in weights if name not in used],
        fitted.broken,
    )


def find_sources(key: str, weights: Keys) -> list[Source]:
    """The plain model's tensors that an entry of another model starts from."""
    name = key.replace('.global_lepe.', '.lepe.0.').replace('.local_lepe.', '.lepe.1.')
    if name in weights:
        return [Source(name)]
    whole = HALF.sub('.lepe.', name)
    if whole in weights:
        return [Source(whole, int(HALF.findall(name)[0]))]
    halves = [name.replace('.lepe.', f'.lepe.{half}.') for half in (0, 1)]
    return [Source(name) for name in halves if name in weights]


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
