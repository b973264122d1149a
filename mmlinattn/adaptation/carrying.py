"""What a student starts with: the weights of its teacher.

Attentions name their projections in a few ways: `qkv` stacks queries, keys and values,
`qkv` of an attention with one projection for queries and keys stacks two, and of a
gated one four; `q` and `kv`, or `q` and `v` where queries are the keys, are layers of
their own. The multi-scale attention stacks them head by head.
"""

import torch
from torch import Tensor, nn

from mmlinattn.models.attentions.multi_scale import MultiScaleLinearAttention
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.utils.names import inside
from mmlinattn.weights.rows import StateDict
from mmlinattn.weights.transfer import entries_of_whole_modules, fit_weights, split_lepe

from .pairs import aligned_pairs

QKV = ('q', 'k', 'v')


def carry_weights(teacher: BaseBackbone, student: BaseBackbone) -> list[str]:
    """Start a student with all of its teacher's weights that it has a place for.

    Projections to queries, keys and values are carried, however an attention stacks
    them; LePE's convolutions, too. Without keys of its own, an attention takes the
    queries'. What is left has no counterpart in the teacher, and keeps its values.

    Args:
        teacher: It does not change.
        student: The same backbone with other attentions.

    Returns:
        list[str]: The student's entries that are new.

    Raises:
        ValueError: See :func:`aligned_pairs`.
    """
    weights = teacher.state_dict()
    for pair in aligned_pairs(teacher, student):
        prefix = f'{pair.name}.attn.'
        theirs = by_projection(pair.teacher.attn, inside(weights, prefix))
        own = pair.student.state_dict()
        (dims,) = pair.teacher.norm1.normalized_shape
        carried = projections(theirs, own, dims)
        for key, entry in by_head(pair.student, carried).items():
            weights[prefix + key] = entry
    weights = split_lepe(weights, student.state_dict())
    loaded = entries_of_whole_modules(fit_weights(student, weights))
    student.load_state_dict(loaded, strict=False)
    return [key for key in student.state_dict() if key not in loaded]


def projections(theirs: StateDict, own: StateDict, dims: int) -> StateDict:
    """Return the projections of an attention with ``own`` entries, made of another
    attention's. Rows of a stack that the other one lacks, such as a gate's, keep their
    values."""
    made: StateDict = {}
    for kind in ('weight', 'bias'):
        parts = split_projections(theirs, kind, dims)
        for layer, names in places(own, kind, dims).items():
            key = f'{layer}.{kind}'
            if not parts or key not in own:
                continue
            rows = torch.cat([parts[name] for name in names])
            made[key] = torch.cat([rows, own[key][len(rows) :].to(rows)])
    return made


def places(entries: StateDict, kind: str, dims: int) -> dict[str, tuple[str, ...]]:
    """Return what each layer of projections stacks; {} for an attention of another
    form, such as one behind a convolution."""
    if f'qkv.{kind}' in entries:
        is_shared = len(entries[f'qkv.{kind}']) == 2 * dims
        return {'qkv': ('q', 'v') if is_shared else QKV}
    names = {'q': ('q',), 'kv': ('k', 'v'), 'v': ('v',)}
    present = {x: parts for x, parts in names.items() if f'{x}.{kind}' in entries}
    return (
        present if {'q', 'v'} <= {part for x in present.values() for part in x} else {}
    )


def split_projections(entries: StateDict, kind: str, dims: int) -> dict[str, Tensor]:
    """Return the weights or biases of queries, keys and values."""
    parts: dict[str, Tensor] = {}
    for layer, names in places(entries, kind, dims).items():
        rows = entries[f'{layer}.{kind}'].split(dims)
        parts.update(zip(names, rows))
    if parts:
        parts.setdefault('k', parts['q'])
    return parts


def by_projection(attention: nn.Module, entries: StateDict) -> StateDict:
    """Return entries with all queries first, then keys, then values."""
    return _reorder(attention, entries, 1, 0)


def by_head(attention: nn.Module, entries: StateDict) -> StateDict:
    """Return entries in the attention's own order: the inverse of
    :func:`by_projection`."""
    return _reorder(attention, entries, 0, 1)


def _reorder(
    attention: nn.Module, entries: StateDict, heads: int, parts: int
) -> StateDict:
    if not isinstance(attention, MultiScaleLinearAttention):
        return entries
    ordered = dict(entries)
    for key in {'qkv.weight', 'qkv.bias'} & entries.keys():
        sizes = [len(QKV), attention.embed_dims // attention.head_dims]
        rows = entries[key].unflatten(0, (sizes[heads], sizes[1 - heads], -1))
        ordered[key] = rows.transpose(0, 1).flatten(0, 2)
    return ordered
