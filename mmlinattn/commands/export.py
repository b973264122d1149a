"""Export a model to ONNX or torch.export's format.

CONFIG is a config of mmdet, mmseg, mmpretrain or mmlinattn, CHECKPOINT its weights. The
file takes normalized images (B, C, H, W) and returns a classifier's or segmentor's
logits, or a one-stage detector's maps of scores and boxes, before boxes are decoded.
For other models, export the backbone (--backbone-only). ONNX files are for batches and
images of any size from 32 x 32 on, those of torch.export for one image of --shape.

With --whole, an ONNX file takes one image (H, W, 3) of any size, RGB in 8 bits, and
returns the predictions of mmlinattn test: boxes, scores, labels and masks, a label map,
or scores of classes. mmlinattn.deployment.Predictor runs it. With --verify, too, the
test of CONFIG runs with the model and with the file.
"""

import argparse
import io
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Optional

from mmlinattn.runs.preparation import (  # first: it checks mmcv
    INSTANCES,
    dataset_meta,
    load_model,
    load_whole,
    make_runner,
    predicting_model,
    preprocessor_options,
    test_dataset,
)

# isort: split
import numpy as np
import torch
from mmengine.config import Config
from mmengine.structures import InstanceData, PixelData
from mmengine.utils import ProgressBar
from torch import nn

from mmlinattn.cli import parser as cli
from mmlinattn.cli import program
from mmlinattn.deployment import (
    FORMATS,
    ExportedModel,
    Predictor,
    WholeModel,
    export,
    parity,
)
from mmlinattn.engine.preflight import predicting_part
from mmlinattn.models.backbones.base import MIN_SIDE
from mmlinattn.runs.screen import NO_SCORE
from mmlinattn.utils import library_of
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.log import quiet

SIDE = cli.number(int, MIN_SIDE, 2**16)
# of the metrics that a library rounds: percent with two digits, shares with three
METRIC_UNITS = {'mmseg': 0.01}
METRIC_UNIT = 0.001
ROUNDED = 'as a GPU rounds'
# options with which a data preprocessor changes images
NOTED = ('mean', 'std', 'bgr_to_rgb', 'to_rgb', 'pad_size_divisor', 'size')
FLAGS = {
    '--backbone-only': 'leave neck and heads out',
    '--whole': 'export from image to predictions: with the resizing of the test '
    'pipeline, normalization, and all steps after the maps (ONNX only)',
    '--half': 'layers and their weights in float16, half the file; images, outputs and '
    'what needs it, such as sums over tokens, stay in float32 (ONNX only)',
    '--trust': 'unpickle everything in CHECKPOINT, which can run any code',
}


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('config', metavar='CONFIG', help='path of the config')
    add('checkpoint', metavar='CHECKPOINT', help='path of the weights')
    add('--format', choices=FORMATS, default='onnx', help='default: onnx')
    text = "file to write; default: the config's name with the format's ending"
    add('--out', type=cli.output_file, metavar='FILE', help=text)
    text = 'size of the image that the exporter runs the model on; default: 224 224'
    add(
        '--shape', nargs=2, type=SIDE, metavar=('H', 'W'), default=[224, 224], help=text
    )
    text = (
        'compare the outputs of the file and of the model, on a random image that is '
        '33 and 65 pixels larger than --shape, or of that size for --format export; '
        "with --whole, on the images of the config's test"
    )
    add('--verify', action='store_true', help=text)
    text = (
        'largest difference that --verify allows, relative to the largest entry of an '
        'output, or with --whole of a metric besides its last digit; default: 1e-4, or '
        '1e-2 with --half'
    )
    add('--tolerance', type=cli.number(float, 0, math.inf), help=text)
    for option, text in FLAGS.items():
        add(option, action='store_true', help=text)
    cli.add_overwrite(parser)
    cli.add_cfg_options(parser, 'model.backbone.num_iters=10')
    args = parser.parse_args(argv)
    if args.whole and (args.format != 'onnx' or args.backbone_only):
        parser.error('--whole needs --format onnx, and no --backbone-only')
    if args.half and args.format != 'onnx':
        parser.error('--half needs --format onnx')
    if args.tolerance is None:
        args.tolerance = 1e-2 if args.half else 1e-4
    return args


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the name of a stage of the export, and its seconds."""
    print(f'{name}: ', end='', flush=True)
    begin = perf_counter()
    try:
        yield
    finally:
        print(f'{perf_counter() - begin:.1f} s')


@contextmanager
def exporter_errors(args: argparse.Namespace) -> Iterator[None]:
    """Name the config in errors of torch's exporters, for operations that a format
    lacks, and the smaller file if there is one."""
    remedy = '' if args.backbone_only else '; --backbone-only exports less of it'

    try:
        yield
    except (RuntimeError, TypeError, LookupError) as error:
        if is_own_fault(error):
            raise
        raise ValueError(
            f'config={args.config!r} can not be exported: {type(error).__name__}: '
            f'{error}{remedy}'
        ) from error


def verify(
    model: ExportedModel, run: Callable[..., Any], args: argparse.Namespace
) -> float:
    """Return the largest difference of an output at a second size, whose list it
    prints."""
    torch.manual_seed(0)
    height, width = args.shape
    if FORMATS[args.format].any_size:
        height, width = height + 33, width + 65
    differences = parity(model, run, torch.randn(1, model.in_channels, height, width))
    print(f'differences at {height} x {width}, relative to the largest entry:')
    for name, difference in differences.items():
        print(f'  {name}: {difference:.1e}')
    return max(differences.values())


def rounded_file(path: Path, **options: Any) -> Any:
    """Return a file in half precision, computed as on a GPU; needs onnx."""
    from mmlinattn.deployment.rounding import Rounded

    return Rounded(path, **options)


def rounding_runner(path: Path) -> Callable[..., Any]:
    """Run a file in half precision as on a GPU, and print its largest numbers."""
    file = rounded_file(path, threads=torch.get_num_threads())

    def run(images: torch.Tensor) -> list[torch.Tensor]:
        outputs, largest, sums = file.run(images.numpy())
        print(
            f'{ROUNDED}: largest number in float16 {largest:.3g}, largest sum of '
            f'magnitudes in a product {sums:.3g} (limit 65504)'
        )
        return [torch.from_numpy(output) for output in outputs]

    return run


def part_of(model: nn.Module, args: argparse.Namespace) -> nn.Module:
    """Return what is exported without --whole: a model or its backbone, of a detector
    inside of another model, too."""
    if not args.backbone_only:
        return predicting_model(model)
    part = predicting_part(model)
    return getattr(part, 'backbone', part)


def whole_model(
    cfg: Config, model: nn.Module, learned_meta: dict[str, Any]
) -> tuple[WholeModel, dict[str, Any]]:
    """Return a model with all steps before and after it, and the notes for its file."""
    dataset = test_dataset(cfg)
    meta = dataset_meta(dataset, library_of(cfg), learned_meta)
    notes = dict(classes=list(meta.get('classes') or ()))
    rcnn = (getattr(model, 'test_cfg', None) or {}).get('rcnn') or {}
    if 'mask_thr_binary' in rcnn:
        notes['mask_threshold'] = rcnn['mask_thr_binary']
    return WholeModel(model, dataset.pipeline, preprocessor_options(cfg)), notes


def predict(
    predictor: Predictor, inputs: Any, data_samples: Sequence[Any], mode: str
) -> list[Any]:
    """Return the forward of a library's model, with the predictions of a file."""
    (sample,) = data_samples
    arrays = predictor(sample.img_path)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if 'boxes' in tensors:
        renamed = {INSTANCES[name]: tensor for name, tensor in tensors.items()}
        sample.pred_instances = InstanceData(**renamed)
    elif 'label_map' in tensors:
        sample.pred_sem_seg = PixelData(data=tensors['label_map'][None].long())
    else:
        scores = tensors['scores']
        sample.set_pred_score(scores).set_pred_label(scores.argmax())
    return [sample]


def timed(
    forward: Callable[..., Any], num: int, seconds: list[float]
) -> Callable[..., Any]:
    """Return a forward that tells its progress of some images, and adds its seconds."""
    progress = ProgressBar(num, file=sys.stderr)

    def call(**batch: Any) -> Any:
        begin = perf_counter()
        predictions = forward(**batch)
        seconds.append(perf_counter() - begin)
        progress.update()
        return predictions

    return call


@dataclass(frozen=True)
class Outcome:
    """Metrics of a test, and the median seconds of a photo."""

    metrics: dict[str, Any]
    seconds: float

    @property
    def scores(self) -> dict[str, float]:
        """The metrics of all classes together, by name."""
        return {
            name: float(value)
            for name, value in self.metrics.items()
            if isinstance(value, (int, float, np.number))
            and not NO_SCORE.fullmatch(name)
        }

    @property
    def values(self) -> np.ndarray:
        """All numbers in the metrics: some have one for each class."""
        return np.hstack([[], *self.metrics.values()])

    def __str__(self) -> str:
        texts = [f'{name} {value:.6g}' for name, value in self.scores.items()]
        return ', '.join([f'{self.seconds * 1e3:.0f} ms a photo', *texts])


def worst_difference(first: Outcome, second: Outcome) -> float:
    """Return the largest difference of two results of a test, which may be without
    numbers."""
    values, others = first.values, second.values
    if values.shape != others.shape or np.any(np.isnan(values) != np.isnan(others)):
        return math.inf
    return float(np.nanmax(abs(values - others), initial=0))


def run_tests(cfg: Config, model: nn.Module, path: Path, half: bool) -> list[Outcome]:
    """Test a model and its file, and print their times and main metrics. One in half
    precision is also computed as on a GPU."""
    cfg.launcher, cfg.log_level = 'none', 'WARNING'
    cfg.test_dataloader.batch_size = 1
    results = []
    with tempfile.TemporaryDirectory() as cfg.work_dir:
        runner = make_runner(cfg)
        runner.model.load_state_dict(model.state_dict())
        num = len(runner.test_loop.dataloader)
        files = {path.name: path}
        if half:
            rounded = files[f'{path.name}, {ROUNDED}'] = Path(cfg.work_dir, path.name)
            rounded.write_bytes(rounded_file(path, notes=()).model.SerializeToString())
        forwards = {'model': runner.model.forward}
        options = ['CPUExecutionProvider'], torch.get_num_threads()
        for name, file in files.items():
            forwards[name] = partial(predict, Predictor(file, *options))
        for name, forward in forwards.items():
            seconds: list[float] = []
            runner.model.forward = timed(forward, num, seconds)
            with redirect_stdout(io.StringIO()):  # MMDetection's tables
                metrics = runner.test()
            results.append(Outcome(metrics, statistics.median(seconds)))
            print(f'\n{name}: {results[-1]}')
    return results


def verify_whole(
    cfg: Config, model: nn.Module, path: Path, args: argparse.Namespace
) -> bool:
    """Return whether a test of a file gives the metrics of its model, which it
    prints."""
    of_model, *of_files = run_tests(cfg, model, path, args.half)
    unit = METRIC_UNITS.get(library_of(cfg), METRIC_UNIT)
    tolerance = args.tolerance + unit
    difference = max(worst_difference(of_model, of_file) for of_file in of_files)
    if difference <= tolerance and not np.any(of_model.values > 0):
        print(
            'verdict: none, since no metric of the model is above 0, and those of the '
            'file can not show what it gives: take a checkpoint that has learned more'
        )
        return True
    return report_verdict('a metric', difference, tolerance)


def report_verdict(what: str, difference: float, tolerance: float) -> bool:
    """Print whether a file gives its model's results, and return it."""
    is_right = difference <= tolerance
    verb = 'gives' if is_right else 'does not give'
    limit = f'{tolerance:.2g} {"is" if is_right else "was"} allowed'
    print(
        f"verdict: the file {verb} the model's results: worst difference of {what} "
        f'{difference:.1g} ({limit})'
    )
    return is_right


@contextmanager
def whole_export(path: Path) -> Iterator[Path]:
    """Let a file, and files that the exporter writes beside it, appear when all are
    whole; the caller writes the yielded one, of the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix='.') as folder:
        draft = Path(folder, path.name)
        yield draft
        for file in sorted(draft.parent.iterdir(), key=lambda file: file == draft):
            file.replace(path.with_name(file.name))


def run(args: argparse.Namespace) -> bool:
    """Write the file; return False if it is verified, and differs from its model."""
    path = args.out or Path(Path(args.config).stem + FORMATS[args.format].suffix)
    cli.protect(args, path)
    with stage('read config and weights'):
        cfg, model = load_model(args)
        meta = load_whole(model, args.checkpoint, args.trust)
    exported: ExportedModel
    if args.whole:
        exported, notes = whole_model(cfg, predicting_model(model), meta)
    else:
        exported = ExportedModel(part_of(model, args))
        options = preprocessor_options(cfg)
        notes = {key: value for key, value in options.items() if key in NOTED}
    with whole_export(path) as draft, exporter_errors(args):
        runner = export(
            exported, draft, args.format, tuple(args.shape), notes, stage, args.half
        )
    print(f'{path.name}: {path.stat().st_size / 1e6:.1f} MB')
    if not args.verify:
        return True
    if not args.whole:
        runner = rounding_runner(path) if args.half else runner
        worst = verify(exported, runner, args)
        return report_verdict('an output', worst, args.tolerance)
    return verify_whole(cfg, model, path, args)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    with cli.errors_in_one_line(*cli.INPUT_ERRORS), quiet():
        is_right = run(args)
    if not is_right:
        sys.exit(
            f'{program.name()}: error: the file differs from the model by more '
            f'than --tolerance {args.tolerance:g}'
        )


if __name__ == '__main__':
    main()
