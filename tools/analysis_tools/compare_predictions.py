"""Draw predictions of models side by side on the same images.

Each image gets a picture: the image, and the predictions of every model. Boxes and
masks with a score of --score or more are drawn as MMDetection draws them; label maps
have a legend, and a classifier's most likely classes are listed. Detectors, segmentors
and classifiers may be mixed.

It goes on in a folder --out that has the predictions of some images. Those with another
--score, size or state of the weights are made again, and those of other models are kept
unless --overwrite is given.

It writes IMAGE_predictions.png, IMAGE_labels.png with the ids of a label map, and
IMAGE_predictions.json with the objects, the share of pixels of each class, or the best
classes.

example:
  python tools/analysis_tools/compare_predictions.py \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import hashlib
import sys
from collections import Counter
from pathlib import Path
from textwrap import shorten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools import cli, runs  # first: a line tells what is wrong with mmcv

# isort: split
import mmcv
import torch
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import VISUALIZERS, DefaultScope
from mmengine.utils import track_iter_progress

from mmlinattn import ops
from mmlinattn.deployment.predictor import as_json, state_of
from mmlinattn.engine.preflight import build_model, error_in
from mmlinattn.utils import load_config
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import load_safely
from mmlinattn_tools.figures import save
from mmlinattn_tools.photo_files import check_model, find_photos, is_done, read_record
from mmlinattn_tools.pictures import (
    Panel,
    draw_label_map,
    save_label_map,
    save_picture,
    side_by_side,
)
from mmlinattn_tools.run_arguments import note

OUT = Path('work_dirs', 'compare_predictions')


def parse_args(argv=None):
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    text = 'config of mmdet, mmseg, mmpretrain or mmlinattn; several are compared'
    add('configs', nargs='+', metavar='CONFIG', help=text)
    add('--image', required=True, metavar='PATH', help='an image, or a folder of them')
    text = "weights, one for each config (default: 'none', those before a training)"
    add('--checkpoint', nargs='+', metavar='PATH', help=text)
    text = 'folder to write to (default: predictions, beside a single checkpoint, or '
    text += f'{OUT})'
    add('--out', type=cli.output_folder, metavar='PATH', help=text)
    text = 'the lowest score of a detection that is drawn (default: %(default)s)'
    kind = cli.number(float, 0, 1)
    add('--score', type=kind, default=0.3, metavar='S', help=text)
    text = 'where models run (default: a GPU where there is one, as in training)'
    add('--device', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


class Subject:
    """A model in eval mode that predicts images by the transforms of its test data.

    Without a checkpoint, 'none', it has the initial weights of a training. A ValueError
    tells of a config that can't be built, and of a checkpoint that is not from it.
    """

    def __init__(self, config, checkpoint='none', device='cpu'):
        load_safely()
        path = Path(checkpoint)
        time = path.stat().st_mtime if path.is_file() else None
        # what the predictions are made with, for the JSON files
        weights = str(path.resolve()) if path.is_file() else checkpoint
        place = str(Path(config).resolve()) if Path(config).is_file() else config
        self.told = dict(config=place, weights=weights, time=time)
        cfg = load_config(config)
        self.scope = cfg.get('default_scope') or 'mmengine'
        ops.check(self.scope)
        torch.manual_seed(0)
        with error_in(cfg, config):
            self.model, meta = build_model(cfg).eval().to(device), {}
            if checkpoint == 'none':
                self.model.init_weights()
            else:
                meta = runs.load_whole(self.model, checkpoint)
            dataset = runs.test_dataset(cfg)
            self.meta = runs.dataset_meta(dataset, self.scope, meta)
            steps = [x for x in dataset.pipeline if 'Annotation' not in str(x.type)]
            self.pipeline = Compose(steps)
        settings = repr((steps, cfg.model.to_dict(), cfg.get('data_preprocessor')))
        self.told['settings'] = hashlib.md5(settings.encode()).hexdigest()

    @torch.no_grad()
    def predict(self, path):
        """The data sample of an image."""
        image = dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        with DefaultScope.overwrite_default_scope(self.scope):
            found = self.pipeline(image)
            batch = dict(inputs=[found['inputs']], data_samples=[found['data_samples']])
            return self.model.test_step(batch)[0].cpu()

    def draw(self, pixels, sample, found, score):
        """An image (H, W, 3), uint8, RGB, with its predictions as the library draws
        them."""
        if 'boxes' not in found:  # a classifier
            return pixels
        drawn = []
        with DefaultScope.overwrite_default_scope(self.scope):
            kind = 'DetLocalVisualizer'
            visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
            visualizer.add_image = lambda name, image, step=0: drawn.append(image)
            visualizer.dataset_meta = self.meta
            visualizer.add_datasample(
                '', pixels, sample, draw_gt=False, pred_score_thr=score
            )
        return drawn[0]

    def draw_labels(self, pixels, labels):
        """An image with the colors of a label map, and their legend."""
        names = self.meta.get('classes') or ()
        return draw_label_map(pixels, labels, names, self.meta.get('palette'))


def run_folder(checkpoints):
    """The folder for the predictions of a single run, or that for several."""
    path = Path(checkpoints[0])
    alone = len(checkpoints) == 1 and path.is_file()
    return path.parent / 'predictions' if alone else OUT


def summary(told):
    """Numbers of a prediction in words, below the name of its model."""
    if 'classes' in told:
        names = [shorten(x['name'], 28, placeholder='...') for x in told['classes']]
        pairs = zip(names, told['classes'])
        return '\n'.join(f'{name}: {x["score"]:.1%}' for name, x in pairs)
    return ', '.join(f'{name}: {len(x)}' for name, x in told.items())


def predict(path, subjects, score):
    """The picture of an image, its numbers, and the label maps of its models."""
    pixels = mmcv.imread(str(path), channel_order='rgb')
    panels, models, maps = [Panel(pixels, ['image'])], [], {}
    for i, subject in enumerate(subjects):
        sample = subject.predict(path)
        found = runs.predictions_of(sample)
        shown = (
            {key: x[found['scores'] >= score] for key, x in found.items()}
            if ('boxes' in found)
            else found
        )
        told = as_json(shown, subject.meta.get('classes') or ())
        lines, legend = [Path(subject.told['config']).stem], []
        if 'label_map' in found:
            maps[i] = found['label_map']
            picture, legend = subject.draw_labels(pixels, maps[i])
        else:
            picture = subject.draw(pixels, sample, found, score)
            lines += summary(told).splitlines()
        panels.append(Panel(picture, lines, legend))
        models.append({**subject.told, **told})
    record = dict(image=path.name, file=state_of(path), score=score, models=models)
    return side_by_side(panels), record, maps


def files_of(numbers, count):
    """The picture of an image's predictions, and the label maps of some models, beside
    the file of its numbers."""
    stem = numbers.stem.removesuffix('_predictions')
    endings = [f'_{i + 1}' if count > 1 else '' for i in range(count)]
    maps = [numbers.with_name(f'{stem}_labels{ending}.png') for ending in endings]
    return numbers.with_suffix('.png'), maps


def find_left(files, subjects, args):
    """The images that are left to predict, and the files for their numbers."""
    stems = Counter(x.stem for x in files)  # a.jpg and a.png differ
    made_with = [x.told for x in subjects]
    left, again = {}, 0
    for path in files:
        name = path.stem if stems[path.stem] == 1 else path.name
        numbers = args.out / f'{name}_predictions.json'
        record = None if args.overwrite else read_record(numbers)
        check_model(numbers, record, made_with)
        if not is_done(record, path, made_with, args.score):
            left[path] = numbers
            again += record is not None
    if len(left) < len(files):
        print(f'{args.out}: it has {len(files) - len(left)} images, {len(left)} left')
    if again:
        print(
            f'{args.out}: {again} images have changed, or were predicted with another '
            '--score, size or state of the weights: they are predicted again'
        )
    return left


def run(args):
    checkpoints = args.checkpoint or ['none'] * len(args.configs)
    if len(checkpoints) != len(args.configs):
        text = f'one value for each config, {len(args.configs)}, got {len(checkpoints)}'
        raise ValueError(f'--checkpoint takes {text}')
    args.out = args.out or run_folder(checkpoints)
    files = find_photos(Path(args.image).expanduser())
    device = args.device or get_device()
    subjects = [Subject(*x, device) for x in zip(args.configs, checkpoints)]
    left, failed = find_left(files, subjects, args), 0
    # an interruption loses none
    for path in track_iter_progress([*left], file=sys.stderr):
        picture, map_files = files_of(left[path], len(subjects))
        cli.protect(args, left[path], picture, *map_files)
        try:
            drawn, record, maps = predict(path, subjects, args.score)
        except Exception as error:
            failed += 1
            text = f'{path}: not predicted: {type(error).__name__}: {error}'
            if is_own_fault(error, cli.TOOLS):
                raise
            if failed == len(files):
                raise ValueError(text) from error
            print(file=sys.stderr)  # behind the progress
            note(text)
            continue
        args.out.mkdir(parents=True, exist_ok=True)
        for i, labels in maps.items():
            save_label_map(labels, map_files[i])
        save_picture(drawn, picture)
        save(record, left[path])
    text = f', {failed} could not be predicted' if failed else ''
    print(f'{args.out}: pictures and numbers of {len(left) - failed} images{text}')


def main(argv=None):
    args = parse_args(argv)
    errors = cli.errors_in_one_line(*cli.INPUT_ERRORS)
    with errors, quiet():
        run(args)


if __name__ == '__main__':
    main()
