"""Asks how much of a teacher's accuracy a student with linear attention keeps.

Classifiers of Imagenette learn with softmax attention, the teachers. Each student has
the teacher's backbone with another attention, and sees as many photographs in each arm:

from scratch   the student learns labels from random weights
carried        it starts with the teacher's weights, and learns labels
attention      its attentions learn the teacher's outputs, without labels
features       then all of it learns the teacher's maps, without labels
whole          then it learns labels

Of 'attention' and 'features', the accuracy is that with the teacher's head. Two
controls tell whether this can decide: softmax attention with new projections must reach
the teacher, and the mean of all values may not. Accuracies at other sizes than trained
are those of the last arm.

Rates are chosen on a grid at whose edges they are not, by a run with another seed: with
labels by the loss on a part of the training photographs that is held back, without
labels by the error on them. Results are written after each training, and a second start
adds what is missing.

    python benchmarks/adaptation.py --imagenette DIR --out FILE --gate
    python benchmarks/adaptation.py --imagenette DIR --out FILE

DIR is the folder of https://github.com/fastai/imagenette (train, val). --gate runs the
controls and one student of one teacher.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

import common  # noqa: F401
import torch
from pretraining import CROP, SQUARE, normalized, random_crops, read_squares, set_rate
from studies import tune, write_results
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from mmlinattn.adaptation import (
    aligned_pairs,
    attention_errors,
    carry_weights,
    feature_errors,
    prepare_alignment,
    student_config,
)
from mmlinattn.models.attentions.base import ProjectedAttention
from mmlinattn.parts import build_model, register
from mmlinattn.utils.log import quiet

CLASSES, BATCH, HELD_BACK = 10, 32, 960
TEACHER_EPOCHS, TEACHER_RATE = 10, 0.001
# photographs of the stages, and of each arm in all: a tenth of the teacher's
STAGES = dict(attention=0.4, features=0.3, labels=0.3)
RATES = dict(
    attention=(0.001, 0.002, 0.004),
    features=(0.0005, 0.001, 0.002),
    labels=(0.0002, 0.0005, 0.001),
    carried=(0.0005, 0.001, 0.002),
    scratch=(0.0005, 0.001, 0.002),
)
MOST_RATES, TUNING_SEED = 6, 100
SIZES = (64, 96, 128, 160)

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
NEW, MEAN = 'new projections', 'mean of values'
# attentions by their name in the results, and their options
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    NEW: ('SoftmaxAttention', {}),
    MEAN: ('MeanAttention', {}),
    'ELFATT': ('ELFATT', dict(block_size=36)),
    'Agent': ('AgentAttention', {}),
    'efficient': ('EfficientAttention', dict(lepe=True)),
    'FLatten': ('FocusedLinearAttention', {}),
    'ViT^3': ('TTTAttention', dict(rotary=False)),
    'linear SOFT++': ('LinearSOFTPlusPlus', {}),
}
WITH_TOKEN = (NEW, MEAN, 'efficient', 'FLatten', 'ViT^3')
GATE = ('ELFATT', NEW, MEAN)
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
    learning = [x for x in parameters if x.requires_grad]
    optimizer = torch.optim.AdamW(learning, rate, weight_decay=decay, foreach=True)
    squares, labels = images
    num_steps = max(round(epochs * len(labels) / BATCH), 1)
    order = torch.empty(0, dtype=torch.long)
    for index in range(num_steps):
        if len(order) < BATCH:
            order = torch.randperm(len(labels), generator=random)
        chosen, order = order[:BATCH], order[BATCH:]
        set_rate(optimizer, rate, index / num_steps)
        loss = loss_of(random_crops(squares[chosen], random), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()


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


class Adaptation:
    """A student of a teacher, with the teacher's head."""

    def __init__(self, teacher: Classifier, cfg: dict[str, Any], seed: int) -> None:
        torch.manual_seed(seed)
        self.teacher, self.cfg = teacher, cfg
        self.student = Classifier(cfg)
        self.student.head.load_state_dict(teacher.head.state_dict())

    def carry(self, is_new: bool) -> None:
        """Take the teacher's weights; with ``is_new``, attentions keep their own."""
        theirs, ours = self.teacher.backbone, self.student.backbone
        fresh = {
            key: x.clone() for key, x in ours.state_dict().items() if '.attn.' in key
        }
        carry_weights(theirs, ours)
        if is_new:
            ours.load_state_dict(fresh, strict=False)

    def align(
        self, stage: str, images: Images, rate: float, seed: int, epochs: float
    ) -> None:
        """Run one of the stages without labels."""
        teacher, student = self.pair()
        pairs = aligned_pairs(teacher, student)
        if stage == 'attention':
            student.requires_grad_(False)
            for pair in pairs:
                pair.student.requires_grad_(True)
        student.train()

        def loss_of(x: Tensor, labels: Tensor) -> Tensor:
            if stage == 'attention':
                return sum(attention_errors(teacher, pairs, x).values())  # type: ignore
            return sum(feature_errors(teacher, student, x).values())  # type: ignore

        train(student.parameters(), loss_of, images, epochs, rate, seed)
        self.student.backbone.load_state_dict(student.state_dict())

    def pair(self) -> tuple[Any, Any]:
        """Return copies of both backbones, ready for the alignment."""
        teacher, student = build_model(self.teacher_cfg), build_model(self.cfg)
        teacher.load_state_dict(self.teacher.backbone.state_dict())
        student.load_state_dict(self.student.backbone.state_dict())
        prepare_alignment(teacher, student)
        return teacher, student

    @property
    def teacher_cfg(self) -> dict[str, Any]:
        """Config of the teacher's backbone."""
        return self.teacher.cfg  # type: ignore[return-value]

    @torch.no_grad()
    def error(self, stage: str, images: Images) -> float:
        """Return the sum of errors on photographs."""
        teacher, student = self.pair()
        student.eval()
        total = 0.0
        for pixels in images[0].split(64):
            x = middles(pixels)
            found = (
                attention_errors(teacher, aligned_pairs(teacher, student), x)
                if stage == 'attention'
                else feature_errors(teacher, student, x)
            )
            total += float(sum(found.values())) * len(pixels)
        total /= len(images[0])
        return total if math.isfinite(total) else 1e9


class Study:
    """Trainings, and the file of their results."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.out: Path = args.out
        self.results: dict[str, Any] = dict(teachers={}, students={})
        if self.out.exists():
            self.results = json.loads(self.out.read_text('utf-8'))
        self.results['torch'] = torch.__version__
        self.photographs = Photographs.read(args.imagenette)
        self.epochs = args.epochs
        self.budget = args.epochs / 10

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_results(self.out, self.results)

    def teacher(self, name: str) -> Classifier:
        """Return a teacher, which is trained if it was not."""
        path = self.out.with_suffix('.weights') / f'{name}.pth'
        torch.manual_seed(0)
        model = Classifier(TEACHERS[name])
        model.cfg = TEACHERS[name]  # type: ignore[assignment]
        if path.exists():
            model.load_state_dict(torch.load(path))
            return model
        began = time.process_time()
        images = self.photographs.train
        learn_labels(model, images, self.epochs, TEACHER_RATE, 0, decay=0.05)
        seconds = round(time.process_time() - began)
        path.parent.mkdir(exist_ok=True)
        torch.save(model.state_dict(), path)
        sizes = {x: self.top1(model, x) for x in SIZES}
        row = dict(epochs=self.epochs, seconds=seconds, sizes=sizes)
        self.results['teachers'][name] = dict(row, top1=sizes[CROP])
        self.save()
        print(name, self.results['teachers'][name], flush=True)
        return model

    def top1(self, model: nn.Module, side: int = CROP) -> float:
        """Return the share of right photographs of the test."""
        return round(evaluate(model, self.photographs.test, side)[1], 4)

    def student(self, teacher: str, name: str, seeds: int) -> None:
        """Train a student in all arms."""
        kind, options = STUDENTS[name]
        model = self.teacher(teacher)
        cfg = student_config(TEACHERS[teacher], kind, options or None)
        if name == NEW:  # the teacher's own attention
            cfg = dict(TEACHERS[teacher], attn_scale=True)
        rows = self.results['students'].setdefault(f'{teacher}, {name}', {})
        rates = rows.setdefault('rates', {})
        runs = Runs(self, model, cfg, is_new=name == NEW, rates=rates)
        for seed in range(seeds):
            for arm in ('aligned', 'carried', 'scratch'):
                row = rows.setdefault(arm, {})
                if str(seed) not in row:
                    row[str(seed)] = getattr(runs, arm)(seed)
                    self.save()
                    print(teacher, name, arm, seed, row[str(seed)], flush=True)


class Runs:
    """The arms of a student.

    Args:
        study: What it is for.
        teacher: Trained.
        cfg: Config of the student's backbone.
        is_new: Whether no weights of attentions are carried.
        rates: Losses or errors by stage and rate, which it completes.
    """

    def __init__(
        self,
        study: Study,
        teacher: Classifier,
        cfg: dict[str, Any],
        is_new: bool,
        rates: dict[str, dict[str, float]],
    ) -> None:
        self.study, self.teacher, self.cfg = study, teacher, cfg
        self.is_new, self.rates = is_new, rates

    def start(self, seed: int, carried: bool = True) -> Adaptation:
        """Return a student at its start."""
        made = Adaptation(self.teacher, self.cfg, seed)
        if carried:
            made.carry(self.is_new)
        return made

    def rate(self, stage: str, loss_at: Callable[[float], float]) -> float:
        """Return the best rate of a stage."""
        losses = self.rates.setdefault(stage, {})

        def rounded(rate: float) -> float:
            loss = round(loss_at(rate), 4)
            print(' ', stage, rate, loss, flush=True)
            return loss

        return tune(losses, rounded, self.study.save, RATES[stage], MOST_RATES, 4)

    def labels(
        self, made: Adaptation, stage: str, epochs: float, rate: float, seed: int
    ) -> Adaptation:
        """Let a student learn labels."""
        images = self.study.photographs.train
        decay = 0.05 if stage == 'scratch' else 0.0
        learn_labels(made.student, images, epochs, rate, seed, decay)
        return made

    def supervised(self, stage: str, seed: int, carried: bool) -> float:
        """Return the accuracy after all photographs with labels."""
        epochs, held_back = self.study.budget, self.study.photographs.held_back

        def loss_at(rate: float) -> float:
            made = self.start(TUNING_SEED, carried)
            if not carried:
                nn.init.trunc_normal_(made.student.head.weight, std=0.02)
            self.labels(made, stage, epochs, rate, TUNING_SEED)
            return evaluate(made.student, held_back)[0]

        rate = self.rate(stage, loss_at)
        made = self.start(seed, carried)
        if not carried:
            nn.init.trunc_normal_(made.student.head.weight, std=0.02)
        return self.study.top1(self.labels(made, stage, epochs, rate, seed).student)

    def scratch(self, seed: int) -> float:
        """From scratch."""
        return self.supervised('scratch', seed, carried=False)

    def carried(self, seed: int) -> float:
        """With the teacher's weights."""
        return self.supervised('carried', seed, carried=True)

    def aligned(self, seed: int) -> dict[str, Any]:
        """After each stage of an adaptation."""
        study, budget = self.study, self.study.budget
        made = self.start(seed)
        found: dict[str, Any] = dict(start=study.top1(made.student))
        done: list[str] = []
        for stage in ('attention', 'features'):
            rate = self.rate(stage, self.error_at(stage, list(done)))
            epochs = STAGES[stage] * budget
            made.align(stage, study.photographs.train, rate, seed, epochs)
            done.append(stage)
            found[stage] = study.top1(made.student)
        epochs = STAGES['labels'] * budget

        def loss_at(rate: float) -> float:
            tried = self.tuned(done)
            self.labels(tried, 'labels', epochs, rate, TUNING_SEED)
            return evaluate(tried.student, study.photographs.held_back)[0]

        self.labels(made, 'labels', epochs, self.rate('labels', loss_at), seed)
        sizes = {side: study.top1(made.student, side) for side in SIZES}
        return dict(found, whole=sizes[CROP], sizes=sizes)

    def error_at(self, stage: str, done: list[str]) -> Callable[[float], float]:
        """Return the function from a rate to the error that it leaves."""

        def error(rate: float) -> float:
            tried = self.tuned(done)
            epochs = STAGES[stage] * self.study.budget
            images = self.study.photographs
            tried.align(stage, images.train, rate, TUNING_SEED, epochs)
            return tried.error(stage, images.held_back)

        return error

    def tuned(self, done: list[str]) -> Adaptation:
        """Return a student of the tuning seed after stages with their best rates."""
        made = self.start(TUNING_SEED)
        for stage in done:
            losses = self.rates[stage]
            rate = float(min(losses, key=lambda x: losses[x]))
            epochs = STAGES[stage] * self.study.budget
            made.align(stage, self.study.photographs.train, rate, TUNING_SEED, epochs)
        return made


def fits(teacher: str, student: str) -> bool:
    """Return whether a teacher's backbone takes a student's attention."""
    if student == 'linear SOFT++':
        return teacher == 'SOFT++'
    return teacher != 'DeiT' or student in WITH_TOKEN


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--imagenette', type=Path, required=True, metavar='DIR')
    parser.add_argument('--teachers', nargs='+', choices=TEACHERS, default=[*TEACHERS])
    parser.add_argument('--students', nargs='+', choices=STUDENTS, default=[*STUDENTS])
    parser.add_argument('--gate', action='store_true')
    parser.add_argument('--epochs', type=float, default=TEACHER_EPOCHS)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--out', type=Path, required=True)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    study = Study(args)
    teachers = args.teachers[:1] if args.gate else args.teachers
    students = GATE if args.gate else args.students
    for teacher in teachers:
        for student in students:
            if fits(teacher, student):
                study.student(teacher, student, args.seeds)


if __name__ == '__main__':
    main()
