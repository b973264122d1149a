"""Teachers, students and photographs of adaptation.py, and what a training is."""

import math
from pathlib import Path
from typing import Any, Callable, NamedTuple

import common  # noqa: F401
import torch
from pretraining import (
    CROP,
    SQUARE,
    draw,
    lessen,
    normalized,
    random_crops,
    read_squares,
)
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from mmlinattn.adaptation import carry_weights, student_config
from mmlinattn.engine.alignment import Alignment, AttentionAlignment, FeatureAlignment
from mmlinattn.models.attentions.base import ProjectedAttention
from mmlinattn.parts import build_model, register
from mmlinattn.utils.log import quiet

CLASSES, BATCH, HELD_BACK = 10, 32, 960
PYRAMID = dict(
    embed_dims=[24, 48, 96, 192], depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 8]
)
TEACHERS: dict[str, dict[str, Any]] = {
    'Swin': dict(
        type='SwinTransformer',
        arch=dict(PYRAMID, embed_dims=24),
        img_size=CROP,
        out_type='avg_featmap',
    ),
    'DeiT': dict(
        type='VisionTransformer',
        arch=dict(embed_dims=144, num_layers=6, num_heads=3),
        img_size=CROP,
        patch_size=16,
        out_type='cls_token',
    ),
    'SOFT++': dict(
        type='SOFTPlusPlus', arch=PYRAMID, img_size=CROP, out_type='cls_token'
    ),
}
NEW, MEAN, SAME = 'new projections', 'mean of values', 'the teacher'
# attentions by their name in the results, and their options
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    MEAN: ('MeanAttention', {}),
    'ELFATT': ('ELFATT', dict(block_size=36)),
    'Agent': ('AgentAttention', {}),
    'efficient': ('EfficientAttention', dict(lepe=True)),
    'FLatten': ('FocusedLinearAttention', {}),
    'ViT^3': ('TTTAttention', dict(rotary=False)),
    'linear SOFT++': ('LinearSOFTPlusPlus', {}),
}
NAMES = (SAME, NEW, *STUDENTS)
WITH_TOKEN = (SAME, NEW, MEAN, 'efficient', 'FLatten', 'ViT^3')
ALIGNMENTS = dict(attention=AttentionAlignment, features=FeatureAlignment)
Images = tuple[Tensor, Tensor]


@register
class MeanAttention(ProjectedAttention):
    """Every token gets the mean of all values: an attention that can't choose."""

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: Any) -> Tensor:
        return v.mean(-2, keepdim=True).expand_as(v)


class Photographs(NamedTuple):
    """Squares and labels: for training, held back from it, and of the test."""

    train: Images
    held_back: Images
    test: Images

    @classmethod
    def read(cls, folder: Path) -> 'Photographs':
        """Read Imagenette, and hold back some of its training photographs."""
        squares, labels = read_squares(folder / 'train')
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        last, first = order[:HELD_BACK], order[HELD_BACK:]
        return cls(
            (squares[first], labels[first]),
            (squares[last], labels[last]),
            read_squares(folder / 'val'),
        )


class Classifier(nn.Module):
    """A backbone's vector, and a layer of classes behind it."""

    def __init__(self, cfg: dict[str, Any]) -> None:
        super().__init__()
        self.cfg = cfg
        self.backbone = build_model(cfg)
        self.head = nn.Linear(self.backbone.feature_channels[-1], CLASSES)
        with quiet():
            self.backbone.init_weights()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x)[-1])


def middles(pixels: Tensor, side: int = CROP) -> Tensor:
    """Return the middles of squares as models take them, resized to a side."""
    margin = (SQUARE - CROP) // 2
    x = normalized(pixels[..., margin:-margin, margin:-margin])
    if side == CROP:
        return x
    return interpolate(x, (side, side), mode='bicubic', antialias=True)


@torch.no_grad()
def evaluate(model: nn.Module, images: Images, side: int = CROP) -> tuple[float, float]:
    """Return the loss and the share of right photographs."""
    model.eval()
    loss, right = 0.0, 0
    for pixels, truth in zip(images[0].split(64), images[1].split(64)):
        scores = model(middles(pixels, side))
        loss += float(cross_entropy(scores, truth, reduction='sum'))
        right += int((scores.argmax(-1) == truth).sum())
    loss /= len(images[1])
    return (loss if math.isfinite(loss) else 1e9), right / len(images[1])


def train(
    parameters: Any,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    images: Images,
    epochs: float,
    rate: float,
    seed: int,
    decay: float = 0.0,
) -> None:
    """Lessen a loss of random crops and their labels."""
    random = torch.Generator().manual_seed(seed)
    squares, labels = images
    num_steps = max(round(epochs * len(labels) / BATCH), 1)
    losses = (
        loss_of(random_crops(squares[chosen], random), labels[chosen])
        for chosen in draw(len(labels), BATCH, num_steps, random)
    )
    lessen(parameters, losses, num_steps, rate, decay)


def learn_labels(
    model: nn.Module,
    images: Images,
    epochs: float,
    rate: float,
    seed: int,
    decay: float,
) -> None:
    """Train a classifier."""

    def loss_of(x: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(model(x), labels, label_smoothing=0.1)

    train(model.train().parameters(), loss_of, images, epochs, rate, seed, decay)


def backbone_of(teacher: dict[str, Any], student: str) -> dict[str, Any]:
    """Return the config of a student's backbone, by the teacher's and its name."""
    if student == SAME:
        return teacher
    if student == NEW:  # softmax attention that is no part of the teacher
        return dict(teacher, attn_scale=True)
    kind, options = STUDENTS[student]
    return student_config(teacher, kind, options or None)


def carry(teacher: Any, student: Any, name: str) -> None:
    """Give a student's backbone the teacher's weights; one with new projections keeps
    its own attentions."""
    if name == SAME:
        student.load_state_dict(teacher.state_dict())
        return
    own = {key: x.clone() for key, x in student.state_dict().items() if '.attn.' in key}
    carry_weights(teacher, student)
    if name == NEW:
        student.load_state_dict(own, strict=False)


def alignment(stage: str, teacher: Any, student: Any, *cfgs: dict) -> Alignment:
    """Return the model of a stage without labels, with copies of two backbones, by
    their configs."""
    model = ALIGNMENTS[stage](*cfgs)
    model.teacher.load_state_dict(teacher.state_dict())
    model.backbone.load_state_dict(student.state_dict())
    return model


class Adaptation:
    """A student of a teacher, with the teacher's head.

    Args:
        teacher: Trained.
        name: Of the student.
        cfg: Config of its backbone.
        seed: Of its random weights.
    """

    def __init__(
        self, teacher: Classifier, name: str, cfg: dict[str, Any], seed: int
    ) -> None:
        torch.manual_seed(seed)
        self.teacher, self.name, self.cfg = teacher, name, cfg
        self.student = Classifier(cfg)
        self.student.head.load_state_dict(teacher.head.state_dict())

    def carry(self) -> None:
        """Take the teacher's weights."""
        carry(self.teacher.backbone, self.student.backbone, self.name)

    def align(
        self, stage: str, images: Images, rate: float, seed: int, epochs: float
    ) -> None:
        """Run one of the stages without labels."""
        model = self.alignment(stage).train()

        def loss_of(x: Tensor, labels: Tensor) -> Tensor:
            return sum(model.errors(x).values())  # type: ignore

        train(model.backbone.parameters(), loss_of, images, epochs, rate, seed)
        self.student.backbone.load_state_dict(model.backbone.state_dict())

    def alignment(self, stage: str) -> Alignment:
        """Return the model of a stage."""
        backbones = self.teacher.backbone, self.student.backbone
        return alignment(stage, *backbones, self.teacher.cfg, self.cfg)

    @torch.no_grad()
    def error(self, stage: str, images: Images) -> float:
        """Return the sum of errors on photographs."""
        model, total = self.alignment(stage).eval(), 0.0
        for pixels in images[0].split(64):
            total += float(sum(model.errors(middles(pixels)).values())) * len(pixels)
        total /= len(images[0])
        return total if math.isfinite(total) else 1e9
