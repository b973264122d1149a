"""How far a student is from its teacher, relative to the teacher's outputs.

Legend: B batch, C channels, (H, W) image.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from mmlinattn.functional.precision import at_least_float32, autocast_disabled
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.models.layers.residuals import DropPath

from .pairs import Pair

SMALLEST = 1e-12  # sum of squares of an output, where it divides


def relative_error(ours: Tensor, theirs: Tensor) -> Tensor:
    r"""Return :math:`\sum (s - t)^2 / \sum t^2` of two tensors of one shape, a scalar
    of float32 at least: 0 where they agree, 1 for an output of zeros."""
    with autocast_disabled(theirs):
        s, t = at_least_float32(ours, theirs)
        return (s - t).square().sum() / t.square().sum().clamp_min(SMALLEST)


def attention_errors(
    teacher: BaseBackbone, pairs: Sequence[Pair], images: Tensor
) -> dict[str, Tensor]:
    """Return errors of the student's attentions for what the teacher's attentions get.

    The teacher runs once, without gradients. At each pair, the student's attention
    takes the same tokens, those of the teacher, so that its error does not depend on
    other blocks, and all of them learn at once.

    Args:
        teacher: In evaluation mode.
        pairs: Of :func:`aligned_pairs`.
        images (Tensor): (B, 3, H, W).

    Returns:
        dict[str, Tensor]: A :func:`relative_error` by the label of the block; it has
            gradients to the student's attentions, where gradients are enabled.
    """
    errors: dict[str, Tensor] = {}
    learns = torch.is_grad_enabled()
    with ExitStack() as stack, torch.no_grad():
        for pair in pairs:
            stack.enter_context(compared(pair, learns, errors))
        teacher(images)
    return errors


@contextmanager
def compared(pair: Pair, learns: bool, errors: dict[str, Tensor]) -> Iterator[None]:
    """Return a context in which a pair's error is computed whenever its teacher
    runs."""
    before: list[Tensor] = []

    def keep(norm: nn.Module, args: tuple[Tensor, ...]) -> None:
        before[:] = args

    def compare(
        attention: nn.Module, args: tuple, kwargs: dict[str, Any], theirs: Tensor
    ) -> None:
        options = {}
        if getattr(pair.student, 'reads_shortcut', False) and pair.teacher.pre_norm:
            options = dict(shortcut=before[0])
        with torch.set_grad_enabled(learns):
            ours = pair.student(*args, **options)
            errors[pair.label] = relative_error(ours, theirs)

    handles = (
        # of a block with its norm first, the shortcut
        pair.teacher.norm1.register_forward_pre_hook(keep),
        pair.teacher.attn.register_forward_hook(compare, with_kwargs=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def feature_errors(
    teacher: BaseBackbone, student: BaseBackbone, images: Tensor
) -> dict[str, Tensor]:
    """Return errors of the student's outputs for images.

    Args:
        teacher: In evaluation mode.
        student: It runs whole, from the image on.
        images (Tensor): (B, 3, H, W).

    Returns:
        dict[str, Tensor]: A :func:`relative_error` by the number of the stage, from 0,
            for each of ``out_indices``; it has gradients to all of the student.
    """
    with torch.no_grad():
        theirs = teacher(images)
    ours = student(images)
    return {
        str(index): relative_error(out, target)
        for index, out, target in zip(student.out_indices, ours, theirs)
    }


def prepare_alignment(teacher: BaseBackbone, student: BaseBackbone) -> None:
    """Make two backbones comparable, and the student without chance.

    - Dropout and stochastic depth are off in the student. They change an output by
      chance, and the teacher, in evaluation mode, does not: their error can't be
      learned.
    - Both read all of an image. Padding that only a backbone in evaluation mode leaves
      out would be an error of the student's, in training mode.
    - Both return tokens in place of a class token or their mean, so that each place
      of the last map is compared.

    - BatchNorms keep the statistics of the teacher's training: those of a batch are
      chance, too.
    - All of the student learns that its outputs depend on, also frozen stages.

    The teacher has no gradients afterwards. Weights do not change, nor does what is
    saved of them.
    """
    teacher.requires_grad_(False).eval()
    student.frozen_stages, student.norm_eval = -1, True
    student.requires_grad_(True).freeze()
    module: Any
    for module in student.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        if isinstance(module, DropPath):
            module.drop_prob = 0.0
        if hasattr(module, 'attn_drop'):
            module.attn_drop = 0.0
    for model in (teacher, student):
        model.mask_padding = False
        if model.out_type in ('avg_featmap', 'cls_token'):
            model.out_type = 'raw'
