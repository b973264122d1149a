"""The attentions in which a student differs from its teacher.

Legend: B batch, C channels, (H, W) map, N tokens.
"""

import re
from typing import Any, NamedTuple

import torch
from torch import nn

from mmlinattn.models.attentions.base import BaseAttention
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.models.backbones.isotropic import IsotropicTransformer
from mmlinattn.models.backbones.pyramid import PyramidTransformer
from mmlinattn.models.layers.blocks import TransformerBlock
from mmlinattn.parts import CLASSES
from mmlinattn.utils.names import shortlist

ATTENTION = '.attn'
TRIED = (2, 2)  # a map
SKELETONS = (IsotropicTransformer, PyramidTransformer)


class Pair(NamedTuple):
    """An attention of the teacher, and the student's in its place.

    Attributes:
        name (str): Of their block in both backbones, such as 'stages.0.blocks.1'.
        teacher (TransformerBlock): The teacher's block.
        student (nn.Module): The student's attention.
    """

    name: str
    teacher: Any
    student: Any

    @property
    def label(self) -> str:
        """The numbers in the name, such as '0.1'."""
        return '.'.join(re.findall(r'\d+', self.name))


def aligned_pairs(teacher: BaseBackbone, student: BaseBackbone) -> list[Pair]:
    """Return the pairs of attentions in which two backbones differ.

    Both attentions take the same tokens (B, N, C) and map size (H, W). Only what a
    block calls ``attn`` is replaced, with its projections and what it encodes of
    positions itself: LePE, or a table of relative positions. Tables of absolute
    positions, convolutions of a block (CPE) and its FFN are the teacher's, and stay.

    Args:
        teacher: One of our backbones.
        student: The same backbone with other attentions.

    Raises:
        ValueError: If the backbones differ in more than attentions, in none, or if an
            attention does not take the tokens of its block. The message names the
            modules, and what fits.
    """
    theirs, ours = blocks_of(teacher), blocks_of(student)
    if theirs.keys() != ours.keys():
        others = sorted(theirs.keys() ^ ours.keys())
        raise ValueError(
            f'teacher and student differ in their blocks, {shortlist(others)}: a '
            'student is the same backbone with other attentions'
        )
    if not theirs:
        raise ValueError(
            f'{type(teacher).__name__} has no blocks of an attention and an FFN, whose '
            f'attention can be replaced: {", ".join(takers())} have them'
        )
    check_other_modules(teacher, student)
    pairs = [
        Pair(name, block, ours[name].attn)
        for name, block in theirs.items()
        if not is_same(block.attn, ours[name].attn)
    ]
    if not pairs:
        kinds = {type(block.attn).__name__ for block in theirs.values()}
        raise ValueError(
            f'teacher and student have the same attentions, {" and ".join(kinds)}: '
            'there is nothing to adapt'
        )
    for pair in pairs:
        check_tokens(teacher, pair)
    return pairs


def blocks_of(model: nn.Module) -> dict[str, TransformerBlock]:
    """Return the blocks of a backbone by their names."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, TransformerBlock)
    }


def takers() -> list[str]:
    """Return the names of the backbones whose option ``attention`` replaces it."""
    return sorted(name for name, kind in CLASSES.items() if issubclass(kind, SKELETONS))


def check_other_modules(teacher: nn.Module, student: nn.Module) -> None:
    """Raise a ValueError for backbones that differ besides their attentions."""
    theirs, ours = (
        {
            key: tuple(entry.shape)
            for key, entry in model.state_dict().items()
            if f'{ATTENTION}.' not in key
        }
        for model in (teacher, student)
    )
    wrong = [
        f'{key} {theirs.get(key, "absent")} in the teacher, '
        f'{ours.get(key, "absent")} in the student'
        for key in {**theirs, **ours}
        if theirs.get(key) != ours.get(key)
    ]
    if wrong:
        raise ValueError(
            f'teacher and student differ in {len(wrong)} entries besides their '
            f"attentions, such as {wrong[0]}: give the student the teacher's options, "
            'and a config of an attention, such as attention=dict(type=...)'
        )


def is_same(ours: nn.Module, theirs: nn.Module) -> bool:
    """Return whether two modules compute the same from the same weights: all their
    parts have the same classes, settings and shapes."""
    named = dict(ours.named_modules()), dict(theirs.named_modules())
    if named[0].keys() != named[1].keys() or shapes_of(ours) != shapes_of(theirs):
        return False
    return all(
        type(module) is type(named[1][name])
        and settings_of(module) == settings_of(named[1][name])
        for name, module in named[0].items()
    )


def shapes_of(module: nn.Module) -> dict[str, Any]:
    """Return the shapes of a module's weights."""
    return {key: tuple(entry.shape) for key, entry in module.state_dict().items()}


def settings_of(module: nn.Module) -> dict[str, Any]:
    """Return a module's own numbers and words, which its constructor has set."""
    return {
        key: value
        for key, value in vars(module).items()
        if not key.startswith('_')
        and key not in ('init_cfg', 'training')
        and isinstance(value, (bool, float, int, str, tuple, type(None)))
    }


def check_tokens(teacher: BaseBackbone, pair: Pair) -> None:
    """Raise a ValueError for an attention that takes only the tokens of a map, in a
    block that has a class token, too."""
    is_bound = getattr(pair.student, 'bound_to_map', False)
    if not is_bound or not has_class_token(teacher, pair.name):
        return
    sizes = pair.student.embed_dims, pair.student.num_heads
    fitting = [
        name
        for name, kind in CLASSES.items()
        if issubclass(kind, BaseAttention)
        and kind is not type(pair.teacher.attn)
        and takes_extra_token(kind, *sizes)
    ]
    raise ValueError(
        f'{pair.name}{ATTENTION} has a class token, which '
        f'{type(pair.student).__name__} does not take: it is bound to the map. '
        f'Attentions that take one: {", ".join(sorted(fitting))}'
    )


@torch.no_grad()
def takes_extra_token(kind: type, embed_dims: int, num_heads: int) -> bool:
    """Return whether an attention of a class updates a class token and a map's
    tokens."""
    state = torch.get_rng_state()
    try:
        attention = kind(embed_dims, num_heads).eval()
        tokens = torch.randn(1, 1 + TRIED[0] * TRIED[1], embed_dims)
        updated = attention(tokens, TRIED)
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return False
    finally:
        torch.set_rng_state(state)
    return updated.shape == tokens.shape and bool((updated != tokens).any(-1).all())


def has_class_token(model: nn.Module, name: str) -> bool:
    """Return whether the tokens of a block begin with a class token."""
    holder = name.rpartition('blocks.')[0].rstrip('.')
    stage = model.get_submodule(holder) if holder else model
    return getattr(stage, 'cls_token', None) is not None
