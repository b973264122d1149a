"""Asks how much of a detector's AP a student with linear attention keeps.

A RetinaNet with softmax attention in windows (Swin) learns a set of photographs from
random weights, and is the teacher. Each student is the same detector with another
attention. In each arm, it sees a quarter as many photographs as the teacher:

scratch  it learns labels from random weights
carried  it starts with the teacher's weights, and learns labels
aligned  it starts so; its attentions learn the teacher's outputs, and all of its
         backbone the teacher's maps, both without labels; then it learns labels

Controls are those of adaptation.py, whose stages these are: softmax attention with new
projections, the mean of all values, and the teacher that learns labels further. AP is
that of the photographs for validation. Rates are chosen by a run with another seed: by
AP, or without labels by the error on these photographs.

    python benchmarks/adapted_detectors.py --config cells.py --out FILE

The config is one of ``mmlinattn new-config``: see fine_tuning.py.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import common  # noqa: F401
import torch
from adaptation import ARMS, STAGES
from adaptation_models import MEAN, NEW, SAME, STUDENTS, TEACHERS
from fine_tuning import (
    BATCH,
    ITERATIONS,
    set_rate,
    small_config,
    start_whole,
    train_detector,
)
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS, DefaultScope
from pretraining import set_rate as set_rate_of
from studies import tune, write_results
from torch import Tensor, nn

from mmlinattn.adaptation import (
    aligned_pairs,
    attention_errors,
    carry_weights,
    feature_errors,
    prepare_alignment,
    student_config,
)
from mmlinattn.parts import build_model
from mmlinattn.utils.log import quiet

TEACHER_LENGTH = 4.0  # over that of an arm
TEACHER_FACTOR = 4.0
FACTORS = dict(scratch=(2.0, 4.0, 8.0), carried=(1.0, 2.0, 4.0), labels=(0.5, 1.0, 2.0))
RATES = dict(attention=(0.001, 0.002, 0.004), features=(0.0002, 0.0005, 0.001))
MOST_RATES, TUNING_SEED = 5, 100
NAMES = (SAME, NEW, MEAN, 'ELFATT', 'Agent', 'efficient', 'FLatten', 'ViT^3')
BACKBONE = dict(TEACHERS['Swin'], out_type='featmap', out_indices=(0, 1, 2, 3))
BACKBONE['type'] = 'mmlinattn.SwinTransformer'  # in configs of MMDetection
PREFIX = 'backbone.'


def backbone_of(student: str) -> dict[str, Any]:
    """Return the config of a student's backbone."""
    if student == SAME:
        return BACKBONE
    if student == NEW:  # softmax attention that is no part of the teacher
        return dict(BACKBONE, attn_scale=True)
    kind, options = STUDENTS[student]
    return student_config(BACKBONE, kind, options or None)


class Student:
    """A student, and its trainings.

    Args:
        study: What it is for.
        name: One of ``NAMES``.
        rates: AP or errors by stage and rate, which it completes.
    """

    def __init__(self, study: 'Study', name: str, rates: dict[str, Any]) -> None:
        self.study, self.name, self.rates = study, name, rates

    def config(self, length: float, seed: int) -> tuple[Config, int]:
        """Return the config of a training, and the number of its iterations."""
        return self.study.config(backbone_of(self.name), length, seed)

    def scratch(self, seed: int) -> dict[str, float]:
        """From random weights."""
        factor = self.factor('scratch', self.from_random)
        return self.from_random(seed, factor)

    def from_random(self, seed: int, factor: float) -> dict[str, float]:
        """Train from random weights."""
        cfg, steps = self.config(1.0, seed)
        set_rate(cfg, factor, steps, is_random=True)
        return train_detector(cfg)

    def carried(self, seed: int) -> dict[str, float]:
        """From the teacher's weights."""
        train = partial(self.from_teacher, aligned=False)
        return train(seed, self.factor('carried', train))

    def aligned(self, seed: int) -> dict[str, float]:
        """From the teacher's weights, with all stages."""
        train = partial(self.from_teacher, aligned=True)
        return train(seed, self.factor('labels', train))

    def from_teacher(self, seed: int, factor: float, aligned: bool) -> dict[str, float]:
        """Train from the teacher's weights, after the stages without labels or without
        these."""
        file = self.study.out.with_suffix('.weights') / f'{self.name}.pth'
        weights = self.start(seed)
        if aligned:
            for stage in RATES:
                rate = self.rate(stage)
                weights, _ = self.align(weights, stage, rate, seed)
        known = torch.load(self.study.teacher())
        state = {
            key: x
            for key, x in known['state_dict'].items()
            if not key.startswith(PREFIX)
        }
        state.update((PREFIX + key, x) for key, x in weights.items())
        torch.save(dict(known, state_dict=state), file)
        cfg, steps = self.config(STAGES['labels'] if aligned else 1.0, seed)
        set_rate(cfg, factor, steps, is_random=False)
        start_whole(cfg, file, 1.0)
        return train_detector(cfg)

    def start(self, seed: int) -> dict[str, Tensor]:
        """Return the backbone's weights at the start."""
        teacher = self.study.backbone(BACKBONE, self.study.teacher_weights())
        torch.manual_seed(seed)
        student = self.study.backbone(backbone_of(self.name))
        if self.name == SAME:
            return teacher.state_dict()
        fresh = student.state_dict()
        fresh = {key: x.clone() for key, x in fresh.items() if '.attn.' in key}
        carry_weights(teacher, student)
        if self.name == NEW:
            student.load_state_dict(fresh, strict=False)
        return student.state_dict()

    def align(
        self, weights: dict[str, Tensor], stage: str, rate: float, seed: int
    ) -> tuple[dict[str, Tensor], float]:
        """Return the backbone's weights after a stage without labels, and the error
        that it leaves."""
        teacher = self.study.backbone(BACKBONE, self.study.teacher_weights())
        student = self.study.backbone(backbone_of(self.name), weights)
        prepare_alignment(teacher, student)
        pairs = aligned_pairs(teacher, student)
        if stage == 'attention':
            student.requires_grad_(False)
            for pair in pairs:
                pair.student.requires_grad_(True)

        def error(images: Tensor) -> Tensor:
            if stage == 'attention':
                return sum(attention_errors(teacher, pairs, images).values())  # type: ignore
            return sum(feature_errors(teacher, student, images).values())  # type: ignore

        learning = [x for x in student.parameters() if x.requires_grad]
        optimizer = torch.optim.AdamW(learning, rate, weight_decay=0.0, foreach=True)
        steps = round(STAGES[stage] * ITERATIONS)
        student.train()
        for step, images in enumerate(self.study.batches('train', steps, seed)):
            set_rate_of(optimizer, rate, step / steps)
            optimizer.zero_grad()
            error(images).backward()
            nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
        student.eval()
        with torch.no_grad():
            errors = [float(error(x)) for x in self.study.batches('val', 10, 0)]
        return student.state_dict(), sum(errors) / len(errors)

    def rate(self, stage: str) -> float:
        """Return the best rate of a stage without labels."""

        def error_at(rate: float) -> float:
            weights = self.start(TUNING_SEED)
            if stage == 'features':
                before = self.rate('attention')
                weights, _ = self.align(weights, 'attention', before, TUNING_SEED)
            error = round(self.align(weights, stage, rate, TUNING_SEED)[1], 4)
            print(' ', self.name, stage, rate, error, flush=True)
            return error

        errors = self.rates.setdefault(stage, {})
        return tune(errors, error_at, self.study.save, RATES[stage], MOST_RATES, 4)

    def factor(self, stage: str, train: Any) -> float:
        """Return the best factor of the rate with labels."""

        def lost_at(factor: float) -> float:
            lost = round(1 - train(TUNING_SEED, factor)['AP'], 4)
            print(' ', self.name, stage, factor, lost, flush=True)
            return lost

        lost = self.rates.setdefault(stage, {})
        return tune(lost, lost_at, self.study.save, FACTORS[stage], MOST_RATES, 4)


class Study:
    """Trainings, and the file of their results."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.path, self.out = args.config, args.out
        self.results: dict[str, Any] = dict(teacher={}, students={})
        if self.out.exists():
            self.results = json.loads(self.out.read_text('utf-8'))
        self.results['torch'] = torch.__version__
        self.photographs: dict[str, list[Tensor]] = {}

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_results(self.out, self.results)

    def config(
        self, backbone: dict[str, Any], length: float, seed: int
    ) -> tuple[Config, int]:
        """Return the config of a detector, and the number of its iterations."""
        cfg, steps = small_config(self.path, length, seed)
        cfg.model.backbone = dict(backbone)
        cfg.model.neck.in_channels = self.widths()
        return cfg, steps

    def widths(self) -> list[int]:
        """Return the channels of the backbone's maps."""
        return list(self.backbone(BACKBONE).feature_channels)

    def backbone(self, cfg: dict[str, Any], weights: Any = None) -> Any:
        """Return a backbone, with weights if there are any."""
        model = build_model(cfg)
        with quiet():
            model.init_weights()
        if weights is not None:
            model.load_state_dict(weights)
        return model

    def teacher(self) -> Path:
        """Return the file of the teacher, which is trained if it was not."""
        file = self.out.with_suffix('.weights') / 'teacher.pth'
        if not file.exists():
            cfg, steps = self.config(BACKBONE, TEACHER_LENGTH, 0)
            set_rate(cfg, TEACHER_FACTOR, steps, is_random=True)
            self.results['teacher'] = train_detector(cfg, out=file)
            self.save()
            print('teacher', self.results['teacher'], flush=True)
        return file

    def teacher_weights(self) -> dict[str, Tensor]:
        """Return the weights of the teacher's backbone."""
        state = torch.load(self.teacher())['state_dict']
        return {
            key[len(PREFIX) :]: x for key, x in state.items() if key.startswith(PREFIX)
        }

    def batches(self, part: str, num: int, seed: int) -> list[Tensor]:
        """Return batches (B, 3, H, W) of the photographs of a part, as models take
        them, in a random order."""
        if part not in self.photographs:
            self.photographs[part] = self.read(part)
        photographs = self.photographs[part]
        random, order, batches = torch.Generator().manual_seed(seed), [], []
        for _ in range(num):
            if len(order) < BATCH:
                order = torch.randperm(len(photographs), generator=random).tolist()
            batches.append(torch.stack([photographs[i] for i in order[:BATCH]]))
            order = order[BATCH:]
        return batches

    def read(self, part: str) -> list[Tensor]:
        """Return the photographs of a part, normalized."""
        cfg, _ = small_config(self.path, 1.0, 0)
        with DefaultScope.overwrite_default_scope('mmdet'), quiet():
            dataset = DATASETS.build(cfg[f'{part}_dataloader'].dataset)
            preprocessor = MODELS.build(cfg.model.data_preprocessor)
            photographs = []
            for i in range(len(dataset)):
                data = {key: [x] for key, x in dataset[i].items()}
                photographs.append(preprocessor(data, False)['inputs'][0])
        return photographs

    def run(self, name: str, seeds: int) -> None:
        """Train a student in all arms."""
        self.teacher()
        row = self.results['students'].setdefault(name, {})
        student = Student(self, name, row.setdefault('rates', {}))
        for seed in range(seeds):
            for arm in ARMS if name != SAME else ('carried',):
                results = row.setdefault(arm, {})
                if str(seed) not in results:
                    results[str(seed)] = getattr(student, arm)(seed)
                    self.save()
                    print(name, arm, seed, results[str(seed)], flush=True)


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--config', type=Path, required=True)
    parser.add_argument('--students', nargs='+', choices=NAMES, default=[*NAMES])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--out', type=Path, required=True)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    study = Study(args)
    for name in args.students:
        study.run(name, args.seeds)


if __name__ == '__main__':
    main()
