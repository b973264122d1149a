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
the teacher, and the mean of all values may not. The teacher learns labels further, too:
what it gains is no merit of a student. Accuracies at other sizes than trained are those
of the last arm.

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
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common  # noqa: F401
import torch
from adaptation_models import (
    CROP,
    MEAN,
    NAMES,
    NEW,
    SAME,
    TEACHERS,
    WITH_TOKEN,
    Adaptation,
    Classifier,
    Photographs,
    backbone_of,
    evaluate,
    learn_labels,
)
from studies import Study, study_parser, tune
from torch import nn

TEACHER_EPOCHS, TEACHER_RATE = 10, 0.001
# photographs of the stages, and of each arm in all: a tenth of the teacher's
STAGES = dict(attention=0.4, features=0.3, labels=0.3)
ALIGNED = ('attention', 'features')
RATES = dict(
    attention=(0.001, 0.002, 0.004),
    features=(0.0005, 0.001, 0.002),
    labels=(0.0002, 0.0005, 0.001),
    carried=(0.0005, 0.001, 0.002),
    scratch=(0.0005, 0.001, 0.002),
)
MOST_RATES, TUNING_SEED = 8, 100
SIZES = (64, 96, 128, 160)
ARMS = ('aligned', 'carried', 'scratch')
GATE = ('ELFATT', NEW, MEAN, SAME)


class AdaptationStudy(Study):
    """Teachers, and the trainings of their students."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args.out, dict(teachers={}, students={}))
        self.photographs = Photographs.read(args.imagenette)
        self.epochs = args.epochs
        self.budget = args.epochs / 10

    def teacher(self, name: str) -> Classifier:
        """Return a teacher, which is trained if it was not."""
        path = self.weights_folder / f'{name}.pth'
        torch.manual_seed(0)
        model = Classifier(TEACHERS[name])
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

    def student(self, teacher: str, name: str, arms: Sequence[str], seeds: int) -> None:
        """Train a student in those arms that it has."""
        rows = self.results['students'].setdefault(f'{teacher}, {name}', {})
        runs = Runs(self, self.teacher(teacher), name, rows.setdefault('rates', {}))
        self.complete(f'{teacher}, {name}', rows, arms_of(runs, arms), seeds)


class Runs:
    """The arms of a student.

    Args:
        study: What it is for.
        teacher: Trained.
        name: Of the student.
        rates: Losses or errors by stage and rate, which it completes.
    """

    def __init__(
        self,
        study: AdaptationStudy,
        teacher: Classifier,
        name: str,
        rates: dict[str, dict[str, float]],
    ) -> None:
        self.study, self.teacher, self.name = study, teacher, name
        self.cfg, self.rates = backbone_of(teacher.cfg, name), rates

    def start(self, seed: int, carried: bool = True) -> Adaptation:
        """Return a student at its start."""
        made = Adaptation(self.teacher, self.name, self.cfg, seed)
        if carried:
            made.carry()
        else:
            made.student.head.reset_parameters()
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
            self.labels(made, stage, epochs, rate, TUNING_SEED)
            return evaluate(made.student, held_back)[0]

        rate = self.rate(stage, loss_at)
        made = self.start(seed, carried)
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
        accuracies: dict[str, Any] = dict(start=study.top1(made.student))
        for i, stage in enumerate(ALIGNED):
            rate = self.rate(stage, self.error_at(stage, ALIGNED[:i]))
            epochs = STAGES[stage] * budget
            made.align(stage, study.photographs.train, rate, seed, epochs)
            accuracies[stage] = study.top1(made.student)
        epochs = STAGES['labels'] * budget

        def loss_at(rate: float) -> float:
            tried = self.tuned(ALIGNED)
            self.labels(tried, 'labels', epochs, rate, TUNING_SEED)
            return evaluate(tried.student, study.photographs.held_back)[0]

        self.labels(made, 'labels', epochs, self.rate('labels', loss_at), seed)
        sizes = {side: study.top1(made.student, side) for side in SIZES}
        return dict(accuracies, whole=sizes[CROP], sizes=sizes)

    def error_at(self, stage: str, earlier: Sequence[str]) -> Callable[[float], float]:
        """Return the function from a rate of a stage to the error that it leaves."""

        def error(rate: float) -> float:
            tried = self.tuned(earlier)
            epochs = STAGES[stage] * self.study.budget
            images = self.study.photographs
            tried.align(stage, images.train, rate, TUNING_SEED, epochs)
            return tried.error(stage, images.held_back)

        return error

    def tuned(self, stages: Sequence[str]) -> Adaptation:
        """Return a student of the tuning seed after stages with their best rates."""
        made = self.start(TUNING_SEED)
        for stage in stages:
            losses = self.rates[stage]
            rate = float(min(losses, key=lambda x: losses[x]))
            epochs = STAGES[stage] * self.study.budget
            made.align(stage, self.study.photographs.train, rate, TUNING_SEED, epochs)
        return made


def arms_of(runs: Any, arms: Sequence[str]) -> dict[str, Callable[[int], Any]]:
    """Return those of the arms by name that a student has; the teacher itself only
    learns further."""
    names = ('carried',) if runs.name == SAME else ARMS
    return {arm: getattr(runs, arm) for arm in names if arm in arms}


def fits(teacher: str, student: str) -> bool:
    """Return whether a teacher's backbone takes a student's attention."""
    if student == 'linear SOFT++':
        return teacher == 'SOFT++'
    return teacher != 'DeiT' or student in WITH_TOKEN


def main(argv: Any = None) -> None:
    parser = study_parser(__doc__)
    parser.add_argument('--imagenette', type=Path, required=True, metavar='DIR')
    parser.add_argument('--teachers', nargs='+', choices=TEACHERS, default=[*TEACHERS])
    parser.add_argument('--students', nargs='+', choices=NAMES, default=[*NAMES])
    parser.add_argument('--arms', nargs='+', choices=ARMS, default=[*ARMS])
    parser.add_argument('--gate', action='store_true')
    parser.add_argument('--epochs', type=float, default=TEACHER_EPOCHS)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    study = AdaptationStudy(args)
    teachers = args.teachers[:1] if args.gate else args.teachers
    students = GATE if args.gate else args.students
    for teacher in teachers:
        for student in students:
            if fits(teacher, student):
                study.student(teacher, student, args.arms, args.seeds)


if __name__ == '__main__':
    main()
