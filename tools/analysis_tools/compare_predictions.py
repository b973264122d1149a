"""Draw predictions of models side by side on the same images.

Each image gets a figure: the image, and the predictions of every model as its library
draws them; a classifier's most likely classes are listed. Boxes and masks with a score
of --score or more are drawn. Detectors, segmentors and classifiers may be mixed.

It goes on in a folder --out that has the predictions of some images, with the same
models and --score; --overwrite begins anew.

It writes IMAGE_predictions.png, and IMAGE_predictions.json with the objects, the share
of pixels of each class, or the best classes, to --out.

example:
  python tools/analysis_tools/compare_predictions.py \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import json
import sys
from collections import Counter
from pathlib import Path
from textwrap import shorten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools import cli, runs  # first: a line tells what is wrong with mmcv

# isort: split
import mmcv
import torch
from matplotlib import style
from mmengine.dataset import Compose
from mmengine.registry import VISUALIZERS, DefaultScope
from mmengine.utils import track_iter_progress

from mmlinattn import ops
from mmlinattn.deployment.predictor import as_json
from mmlinattn.engine.preflight import build_model, error_in
from mmlinattn.utils import load_config
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import load_safely
from mmlinattn_tools.figures import STYLE, picture_grid, save
from mmlinattn_tools.own_data import PHOTO_ENDINGS, read_headers
from mmlinattn_tools.run_arguments import note

TOLD = ('config', 'weights', 'time')  # of a model, in the JSON files
VISUALIZER = dict(label_map='SegLocalVisualizer', boxes='DetLocalVisualizer')


def parse_args(argv=None):
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    text = 'config of mmdet, mmseg, mmpretrain or mmlinattn; several are compared'
    add('configs', nargs='+', metavar='CONFIG', help=text)
    add('--image', required=True, metavar='PATH', help='an image, or a folder of them')
    text = "weights, one for each config (default: 'none', those before a training)"
    add('--checkpoint', nargs='+', metavar='PATH', help=text)
    text = 'folder to write to (default: %(default)s)'
    out = Path('work_dirs', 'compare_predictions')
    add('--out', type=cli.output_folder, default=out, metavar='PATH', help=text)
    text = 'the lowest score of a detection that is drawn (default: %(default)s)'
    kind = cli.number(float, 0, 1)
    add('--score', type=kind, default=0.3, metavar='S', help=text)
    add('--device', default='cpu', help='where models run (default: %(default)s)')
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
        self.told = dict(zip(TOLD, (config, checkpoint, time)))
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
        kinds = [kind for key, kind in VISUALIZER.items() if key in found]
        if not kinds:  # a classifier
            return pixels
        drawn = []
        with DefaultScope.overwrite_default_scope(self.scope):
            visualizer = VISUALIZERS.build(dict(type=kinds[0], name=kinds[0]))
            # mmseg's visualizer does not return the image that it has drawn
            visualizer.add_image = lambda name, image, step=0: drawn.append(image)
            visualizer.dataset_meta = self.meta
            least = dict(pred_score_thr=score) if 'boxes' in found else {}
            visualizer.add_datasample('', pixels, sample, draw_gt=False, **least)
        return drawn[0]


def find_photos(place):
    """A photo, or those of a folder; damaged ones among them are named and left out."""
    if place.is_file():
        return [place]
    found = [x for x in sorted(place.glob('*')) if x.suffix.lower() in PHOTO_ENDINGS]
    pairs = zip(found, read_headers(found))
    damaged = [x for x, header in pairs if header is None or header.ends_early]
    if damaged:
        names = ', '.join(x.name for x in damaged)
        note(f'--image {place}: left out {len(damaged)} damaged photos: {names}')
    if len(found) == len(damaged):
        raise FileNotFoundError(f'--image {place}: there is no image')
    return [x for x in found if x not in damaged]


def summary(told):
    """Numbers of a prediction in words, below the name of its model."""
    if 'classes' in told:
        names = [shorten(x['name'], 28, placeholder='...') for x in told['classes']]
        pairs = zip(names, told['classes'])
        return '\n'.join(f'{name}: {x["score"]:.1%}' for name, x in pairs)
    return ', '.join(f'{name}: {len(x)}' for name, x in told.items())


def draw(path, subjects, score):
    """The figure of an image, and its numbers."""
    pixels = mmcv.imread(str(path), channel_order='rgb')
    figure, grid = picture_grid(1, 1 + len(subjects), pixels.shape, 4.0)
    grid[0, 0].imshow(pixels)
    grid[0, 0].set_title('image')
    models = []
    for subject, axes in zip(subjects, grid[0, 1:]):
        sample = subject.predict(path)
        found = runs.predictions_of(sample)
        axes.imshow(subject.draw(pixels, sample, found, score))
        if 'boxes' in found:
            found = {key: x[found['scores'] >= score] for key, x in found.items()}
        told = as_json(found, subject.meta.get('classes') or ())
        name = Path(subject.told['config']).stem
        axes.set_title(f'{name}\n{summary(told)}')
        models.append({**subject.told, **told})
    return figure, dict(image=path.name, score=score, models=models)


def is_done(file, subjects, score):
    """True if a JSON file has an image's predictions of these models with this
    score."""
    if not file.is_file():
        return False
    told = json.loads(file.read_text('utf-8'))
    models = [{key: x.get(key) for key in TOLD} for x in told.get('models', ())]
    return told.get('score') == score and models == [x.told for x in subjects]


def run(args):
    checkpoints = args.checkpoint or ['none'] * len(args.configs)
    if len(checkpoints) != len(args.configs):
        text = f'one value for each config, {len(args.configs)}, got {len(checkpoints)}'
        raise ValueError(f'--checkpoint takes {text}')
    files = find_photos(Path(args.image).expanduser())
    subjects = [Subject(*x, args.device) for x in zip(args.configs, checkpoints)]
    stems = Counter(x.stem for x in files)  # a.jpg and a.png differ
    left = {}
    for path in files:
        name = path.stem if stems[path.stem] == 1 else path.name
        numbers = args.out / f'{name}_predictions.json'
        if args.overwrite or not is_done(numbers, subjects, args.score):
            left[path] = numbers
    if len(left) < len(files):
        print(f'{args.out}: it has {len(files) - len(left)} images, {len(left)} left')
    # an interruption loses none
    for path in track_iter_progress([*left], file=sys.stderr):
        numbers, picture = left[path], left[path].with_suffix('.png')
        cli.protect(args, numbers, picture)
        figure, found = draw(path, subjects, args.score)
        args.out.mkdir(parents=True, exist_ok=True)
        save(figure, picture)
        save(found, numbers)
    print(f'{args.out}: pictures and numbers of {len(left)} images')


def main(argv=None):
    args = parse_args(argv)
    errors = cli.errors_in_one_line(*cli.INPUT_ERRORS)
    with errors, quiet(), style.context(STYLE):
        run(args)


if __name__ == '__main__':
    main()
