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

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import common  # noqa: F401
import torch
from adaptation import ARMS, STAGES, arms_of
from adaptation_models import (
    MEAN,
    NEW,
    SAME,
    TEACHERS,
    Alignment,
    alignment,
    backbone_of,
    carry,
)
from fine_tuning import (
    BATCH,
    ITERATIONS,
    PREFIX,
    set_schedule,
    small_config,
    start_whole,
    train_detector,
)
from mmengine.config import Config
from mmengine.model.utils import stack_batch
from mmengine.registry import DATASETS, MODELS, DefaultScope
from pretraining import draw, lessen
from studies import Study, study_parser, tune
from torch import Tensor

from mmlinattn.parts import build_model
from mmlinattn.utils.log import quiet
from mmlinattn.utils.names import inside
from mmlinattn.weights import read_file

TEACHER_LENGTH = 4.0  # over that of an arm
TEACHER_FACTOR = 4.0
FACTORS = dict(scratch=(2.0, 4.0, 8.0), carried=(1.0, 2.0, 4.0), labels=(0.5, 1.0, 2.0))
RATES = dict(attention=(0.001, 0.002, 0.004), features=(0.0002, 0.0005, 0.001))
MOST_RATES, TUNING_SEED = 5, 100
NAMES = (SAME, NEW, MEAN, 'ELFATT', 'Agent', 'efficient', 'FLatten', 'ViT^3')
BACKBONE = dict(TEACHERS['Swin'], out_type='featmap', out_indices=(1, 2, 3))
BACKBONE['type'] = 'mmlinattn.SwinTransformer'  # in configs of MMDetection


class Student:
    """A student, and its trainings.

    Args:
        study: What it is for.
        name: One of ``NAMES``.
        rates: AP or errors by stage and rate, which it completes.
    """

    def __init__(
        self, study: 'DetectorStudy', name: str, rates: dict[str, Any]
    ) -> None:
        self.study, self.name, self.rates = study, name, rates
        self.cfg = backbone_of(BACKBONE, name)
        # after stages, by stage and seed: rates of later ones start from them
        self.backbones: dict[tuple[str, int], Any] = {}

    def config(self, length: float, seed: int) -> tuple[Config, int]:
        """Return the config of a training, and the number of its iterations."""
        return self.study.config(self.cfg, length, seed)

    def scratch(self, seed: int) -> dict[str, float]:
        """From random weights."""
        factor = self.factor('scratch', self.from_random)
        return self.from_random(seed, factor)

    def from_random(self, seed: int, factor: float) -> dict[str, float]:
        """Train from random weights."""
        cfg, steps = self.config(1.0, seed)
        set_schedule(cfg, factor, steps, is_random=True)
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
        file = self.study.weights_folder / f'{self.name}.pth'
        backbone = self.adapted('features', seed) if aligned else self.start(seed)
        known = read_file(self.study.teacher())
        state = {
            key: x
            for key, x in known['state_dict'].items()
            if not key.startswith(PREFIX)
        }
        state.update((PREFIX + key, x) for key, x in backbone.state_dict().items())
        torch.save(dict(known, state_dict=state), file)
        cfg, steps = self.config(STAGES['labels'] if aligned else 1.0, seed)
        set_schedule(cfg, factor, steps, is_random=False)
        start_whole(cfg, file, 1.0)
        return train_detector(cfg)

    def start(self, seed: int) -> Any:
        """Return the backbone at the start."""
        torch.manual_seed(seed)
        student = self.study.backbone(self.cfg)
        carry(self.study.teacher_backbone(), student, self.name)
        return student

    def adapted(self, stage: str, seed: int) -> Any:
        """Return the backbone after a stage without labels, at its best rate."""
        if (stage, seed) not in self.backbones:
            model = self.align(stage, self.rate(stage), seed)
            self.backbones[stage, seed] = model.backbone
        return self.backbones[stage, seed]

    def before(self, stage: str, seed: int) -> Any:
        """Return the backbone before a stage without labels."""
        earlier = [*RATES][: [*RATES].index(stage)]
        return self.adapted(earlier[-1], seed) if earlier else self.start(seed)

    def align(self, stage: str, rate: float, seed: int) -> Alignment:
        """Run a stage without labels."""
        backbones = self.study.teacher_backbone(), self.before(stage, seed)
        model = alignment(stage, *backbones, BACKBONE, self.cfg).train()
        steps = round(STAGES[stage] * ITERATIONS)
        losses = (
            sum(model.errors(images).values())
            for images in self.study.batches('train', steps, seed)
        )
        lessen(model.backbone.parameters(), losses, steps, rate, decay=0.0)  # type: ignore
        return model

    @torch.no_grad()
    def error(self, model: Alignment) -> float:
        """Return the mean error on photographs for validation."""
        model.eval()
        batches = self.study.batches('val', 10, 0)
        errors = [float(sum(model.errors(images).values())) for images in batches]
        return sum(errors) / len(errors)

    def rate(self, stage: str) -> float:
        """Return the best rate of a stage without labels."""

        def error_at(rate: float) -> float:
            error = round(self.error(self.align(stage, rate, TUNING_SEED)), 4)
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


class DetectorStudy(Study):
    """A teacher, and the trainings of its students."""

    def __init__(self, path: Path, out: Path) -> None:
        super().__init__(out, dict(teacher={}, students={}))
        self.path = path
        self.widths = list(self.backbone(BACKBONE).feature_channels)
        self.photographs: dict[str, list[Tensor]] = {}

    def config(
        self, backbone: dict[str, Any], length: float, seed: int
    ) -> tuple[Config, int]:
        """Return the config of a detector, and the number of its iterations."""
        cfg, steps = small_config(self.path, length, seed)
        cfg.model.backbone = dict(backbone)
        cfg.model.neck.in_channels = self.widths
        return cfg, steps

    def backbone(self, cfg: dict[str, Any]) -> Any:
        """Return a backbone with random weights."""
        model = build_model(cfg)
        with quiet():
            model.init_weights()
        return model

    def teacher_backbone(self) -> Any:
        """Return the teacher's backbone."""
        model = build_model(BACKBONE)
        state = read_file(self.teacher())['state_dict']
        model.load_state_dict(inside(state, PREFIX))
        return model

    def teacher(self) -> Path:
        """Return the file of the teacher, which is trained if it was not."""
        file = self.weights_folder / 'teacher.pth'
        if not file.exists():
            cfg, steps = self.config(BACKBONE, TEACHER_LENGTH, 0)
            set_schedule(cfg, TEACHER_FACTOR, steps, is_random=True)
            self.results['teacher'] = train_detector(cfg, out=file)
            self.save()
            print('teacher', self.results['teacher'], flush=True)
        return file

    def batches(self, part: str, num: int, seed: int) -> list[Tensor]:
        """Return batches (B, 3, H, W) of the photographs of a part, as models take
        them, in a random order; smaller ones have zeros below and on the right."""
        if part not in self.photographs:
            self.photographs[part] = self.read(part)
        photographs = self.photographs[part]
        random = torch.Generator().manual_seed(seed)
        return [
            stack_batch([photographs[i] for i in chosen])
            for chosen in draw(len(photographs), BATCH, num, random)
        ]

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

    def run(self, name: str, arms: Sequence[str], seeds: int) -> None:
        """Train a student in those arms that it has."""
        self.teacher()
        rows = self.results['students'].setdefault(name, {})
        student = Student(self, name, rows.setdefault('rates', {}))
        self.complete(name, rows, arms_of(student, arms), seeds)


def main(argv: Any = None) -> None:
    parser = study_parser(__doc__)
    parser.add_argument('--config', type=Path, required=True)
    parser.add_argument('--students', nargs='+', choices=NAMES, default=[*NAMES])
    parser.add_argument('--arms', nargs='+', choices=ARMS, default=[*ARMS])
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    study = DetectorStudy(args.config, args.out)
    for name in args.students:
        study.run(name, args.arms, args.seeds)


if __name__ == '__main__':
    main()
