"""Models whose training aligns a student with its teacher, on photos without labels."""

import logging
from collections.abc import Mapping
from typing import Any, Optional, Union

from mmengine.model import BaseModel
from torch import Tensor

from mmlinattn.adaptation import (
    aligned_pairs,
    attention_errors,
    carry_weights,
    feature_errors,
    prepare_alignment,
)
from mmlinattn.models.layers.initialization import entries_of, is_pretrained
from mmlinattn.registry import MODELS
from mmlinattn.registry import build_model as build_own
from mmlinattn.utils.log import log
from mmlinattn.utils.names import shortlist


class Alignment(BaseModel):
    """A student and its teacher.

    The student starts with all weights of the teacher that it has a place for, unless
    it has weights of its own. Checkpoints have the student as ``backbone.*``, so that
    ``pretrained`` of a detector, a segmentor or a classifier takes them, and the
    teacher as ``teacher.*``.

    Args:
        teacher (dict): Config of one of our backbones, whose ``init_cfg`` names
            weights.
        backbone (dict): Config of the student, the same backbone with other
            attentions.
        data_preprocessor (dict, optional): That of the teacher's training.
        init_cfg (dict, optional): Initial values, as in MMEngine.

    Raises:
        ValueError: See :func:`mmlinattn.adaptation.aligned_pairs`.
    """

    def __init__(
        self,
        teacher: Mapping[str, Any],
        backbone: Mapping[str, Any],
        data_preprocessor: Optional[dict] = None,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(data_preprocessor, init_cfg)
        self.teacher = build_own(teacher)
        self.backbone = build_own(backbone)
        prepare_alignment(self.teacher, self.backbone)
        # not among the modules, which they are already
        self.pairs = tuple(aligned_pairs(self.teacher, self.backbone))
        self.freeze_others()

    def freeze_others(self) -> None:
        """Freeze what of the student does not learn: nothing."""

    def train(self, mode: bool = True) -> 'Alignment':
        super().train(mode)
        self.teacher.eval()
        return self

    def init_weights(self) -> None:
        is_first = not self.is_init
        super().init_weights()
        if not any(map(is_pretrained, entries_of(self.teacher.init_cfg))):
            text = (
                'The teacher is NOT TRAINED, unless load_from has its weights: name '
                "them in model.teacher.init_cfg=dict(type='Pretrained', checkpoint=...)"
            )
            log(text, logging.WARNING)
        if is_first and not any(map(is_pretrained, entries_of(self.backbone.init_cfg))):
            new = carry_weights(self.teacher, self.backbone)
            log(f"The student has its teacher's weights; new ones: {shortlist(new)}")

    def forward(
        self, inputs: Tensor, data_samples: Any = None, mode: str = 'tensor'
    ) -> Union[dict[str, Tensor], tuple[Tensor, ...]]:
        """Return losses, with ``mode='loss'``, or the student's outputs of images (B,
        3, H, W)."""
        if mode == 'loss':
            return {f'loss_{key}': x for key, x in self.errors(inputs).items()}
        return self.backbone(inputs)

    def errors(self, images: Tensor) -> dict[str, Tensor]:
        """Return the errors of the student by what they are of."""
        raise NotImplementedError


@MODELS.register_module()
class AttentionAlignment(Alignment):
    """First stage: the student's attentions learn the outputs of the teacher's, all at
    once, and nothing else learns.

    The log has a loss for each block, ``loss_0.1`` for the second block of the first
    stage: see :func:`mmlinattn.adaptation.attention_errors`.

    Args:
        Others: See :class:`Alignment`.
    """

    def freeze_others(self) -> None:
        learning = {id(x) for pair in self.pairs for x in pair.student.parameters()}
        for parameter in self.backbone.parameters():
            parameter.requires_grad &= id(parameter) in learning

    def errors(self, images: Tensor) -> dict[str, Tensor]:
        return attention_errors(self.teacher, self.pairs, images)


@MODELS.register_module()
class FeatureAlignment(Alignment):
    """Second stage: the student, run whole, learns the outputs of the teacher.

    The log has a loss for each of ``out_indices``, ``loss_3`` for the fourth stage: see
    :func:`mmlinattn.adaptation.feature_errors`. ``load_from`` names the checkpoint of
    the first stage.

    Args:
        Others: See :class:`Alignment`.
    """

    def errors(self, images: Tensor) -> dict[str, Tensor]:
        return feature_errors(self.teacher, self.backbone, images)
