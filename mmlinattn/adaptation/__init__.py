"""From a trained backbone, the teacher, to the same backbone with other attentions, the
student.

`pairs` finds the attentions that differ, and refuses backbones that differ otherwise;
`carrying` starts the student from the teacher's weights; `errors` measures how far the
student is from the teacher, block by block or map by map: what a training lessens;
`students` and `hosts` make the configs of both. It needs PyTorch alone.

Source of the stages: *ViT-AdaLA: Adapting Vision Transformers with Linear Attention*
(arXiv 2603.16063).
"""

from .carrying import carry_weights
from .errors import attention_errors, feature_errors, prepare_alignment
from .hosts import our_backbone
from .pairs import Pair, aligned_pairs
from .students import student_config

__all__ = [
    'Pair',
    'aligned_pairs',
    'attention_errors',
    'carry_weights',
    'feature_errors',
    'our_backbone',
    'prepare_alignment',
    'student_config',
]
