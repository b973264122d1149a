"""Runs as a user starts them: the installed package, on its command lines, in a folder
of one's own. Configs stay as they are; options say where the data is, how large the
images are and how long it goes on, and fix the seed."""

import json
import math
import os
import signal
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch

PYTHON = sys.executable
MIM = Path(PYTHON).with_name('mim')
MIM_FOLDER = Path(sysconfig.get_path('purelib')) / 'mmlinattn' / '.mim'
SIDE = 64
NUM_TRAIN = 8
# what is logged beside metrics
TIMES = {'time', 'data_time', 'step'}


def is_modern():
    """Whether this is the stack of the onedl distributions."""
    try:
        distribution('onedl-mim')
    except PackageNotFoundError:
        return False
    return True


class User:
    """Someone at the command line.

    Args:
        folder (Path): Where they work.
    """

    def __init__(self, folder):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
        # results alike on every machine; threads that compete for cores only wait
        self.env['CUDA_VISIBLE_DEVICES'] = ''
        self.env.setdefault('OMP_NUM_THREADS', '1')

    def run(self, *command, fails=False):
        """Runs a command to its end, and returns what it printed."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode != 0) == fails, tail(done.stdout)
        return done.stdout

    def run_until(self, reached, *command):
        """Runs a command and kills it, with all that it started, at a moment.

        Args:
            reached (Callable): Tells whether the moment has come.
            *command: The command.
        """
        log = self.folder / 'killed.log'
        with open(log, 'w') as file:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.folder,
                env=self.env,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            while not reached():
                assert process.poll() is None, tail(log.read_text())
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def mim(self, *args, fails=False):
        """Runs mim, and returns what it printed."""
        return self.run(MIM, *args, fails=fails)

    def train_command(self, library, config, work_dir, options, *args):
        """The command of :meth:`train`."""
        begin = [PYTHON, MIM_FOLDER / 'tools' / 'train.py', config]
        if uses_mim(library):
            begin = [MIM, 'train', mim_name(library), config, '--gpus', '0']
        return [
            *begin,
            '--work-dir',
            work_dir,
            *args,
            '--cfg-options',
            *key_values(options),
        ]

    def train(self, library, config, options, *args):
        """Trains, by ``mim train`` of a library or by our own tool.

        Args:
            library (str): mmdet, mmsegmentation, mmpretrain, mmlinattn or tools;
                mmlinattn means tools where mim can't find us.
            config (str | Path): Path of the config.
            options (dict): Options of the config to override.
            *args: More arguments of the training tool.

        Returns:
            Training: What it left.
        """
        work_dir = self.folder / 'train'
        command = self.train_command(library, config, work_dir, options, *args)
        return Training(work_dir, self.run(*command))

    def test(self, library, config, checkpoint, options, *args):
        """Tests, in the same ways as :meth:`train`, and returns metrics by name."""
        work_dir = self.folder / f'test{"".join(args)}'
        begin = [PYTHON, MIM_FOLDER / 'tools' / 'test.py', config, checkpoint]
        if uses_mim(library):
            begin = [
                MIM,
                'test',
                mim_name(library),
                config,
                '--checkpoint',
                checkpoint,
                '--gpus',
                '0',
            ]
        output = self.run(
            *begin, '--work-dir', work_dir, *args, '--cfg-options', *key_values(options)
        )
        assert f'Load checkpoint from {checkpoint}' in output
        assert 'size mismatch' not in output and 'in source state_dict' not in output
        (report,) = work_dir.glob('*/*.json')
        return metrics_of(json.loads(report.read_text()))


class Training:
    """What a training left in its work directory.

    Args:
        work_dir (Path): The folder.
        output (str): What was printed.
    """

    def __init__(self, work_dir, output):
        self.work_dir = work_dir
        self.output = output
        log = max(work_dir.glob('*/vis_data/scalars.json'))
        self.log = [json.loads(line) for line in log.read_text().splitlines()]

    @property
    def checkpoint(self):
        """Path of the last checkpoint."""
        path = Path((self.work_dir / 'last_checkpoint').read_text())
        assert path.is_file()
        return path

    @property
    def iterations(self):
        """Numbers of the iterations that this run logged."""
        return [line['iter'] for line in self.log if 'loss' in line]

    @property
    def metrics(self):
        """Metrics of the last validation by name."""
        losses = [line['loss'] for line in self.log if 'loss' in line]
        assert losses and all(math.isfinite(loss) for loss in losses)
        return metrics_of([line for line in self.log if 'loss' not in line][-1])

    def optimizer_steps(self):
        """Numbers of steps that the optimizer has made, one for each parameter."""
        state = torch.load(self.checkpoint, map_location='cpu', weights_only=False)
        return {int(entry['step']) for entry in state['optimizer']['state'].values()}


def metrics_of(line):
    metrics = {key: value for key, value in line.items() if key not in TIMES}
    assert metrics and all(map(math.isfinite, metrics.values())), line
    return metrics


def key_values(options):
    return [f'{key}={value}' for key, value in options.items()]


def tail(output, num_lines=40):
    return '\n'.join(output.splitlines()[-num_lines:])


def uses_mim(library):
    return library != 'tools' and not (library == 'mmlinattn' and is_modern())


def mim_name(library):
    """mmdet's name in mim: onedl's mim knows the long one only."""
    return 'mmdetection' if library == 'mmdet' and is_modern() else library


@pytest.fixture(scope='session')
def configs():
    """Folder of our configs, as installed."""
    assert MIM_FOLDER.is_dir(), 'install the package first: pip install .'
    return MIM_FOLDER / 'configs'


@pytest.fixture(scope='session')
def modern():
    return is_modern()


@pytest.fixture(scope='session')
def data(configs, tmp_path_factory):
    """The folder of a layout's dataset by the layout's name, made at first use."""
    made = {}

    def get(layout):
        if layout not in made:
            folder = tmp_path_factory.mktemp('data') / layout
            width = 2 * SIDE if layout == 'cityscapes' else SIDE
            tool = MIM_FOLDER / 'tools' / 'dataset_converters' / 'make_shapes.py'
            subprocess.run(
                [
                    PYTHON,
                    tool,
                    '--layout',
                    layout,
                    '--out',
                    folder,
                    '--num-train',
                    str(NUM_TRAIN),
                    '--num-val',
                    '4',
                    '--size',
                    str(width),
                    str(SIDE),
                ],
                check=True,
            )
            made[layout] = folder
        return made[layout]

    return get


@pytest.fixture
def user(tmp_path):
    yield User(tmp_path)
    remove_checkpoints(tmp_path)


@pytest.fixture(scope='module')
def earlier_user(tmp_path_factory):
    """One whose results several tests build on."""
    folder = tmp_path_factory.mktemp('earlier')
    yield User(folder)
    remove_checkpoints(folder)


def remove_checkpoints(folder):
    """They have hundreds of megabytes, and pytest keeps folders for days."""
    for checkpoint in folder.rglob('*.pth'):
        checkpoint.unlink()


@pytest.fixture(scope='session')
def quick(data):
    """Options that make a config of a kind quick, by the kind's name."""

    def get(kind, **more):
        options = {
            'randomness.seed': 0,
            'train_dataloader.batch_size': 2,
            # no test downloads weights
            'pretrained': None,
        }
        for split in ('train', 'val', 'test'):
            options[f'{split}_dataloader.num_workers'] = 0
            options[f'{split}_dataloader.persistent_workers'] = False
        options.update(KINDS[kind](data))
        return {**options, **more}

    return get


def both(options):
    """The same for validation and test."""
    return {
        f'{split}_{key}': value
        for split in ('val', 'test')
        for key, value in options.items()
    }


def coco(data):
    root, scale = data('coco'), f'({SIDE},{SIDE})'
    return {
        'train_dataloader.dataset.data_root': f'{root}/',
        'train_dataloader.dataset.pipeline.2.scale': scale,
        **both(
            {
                'dataloader.dataset.data_root': f'{root}/',
                'dataloader.dataset.pipeline.1.scale': scale,
                'evaluator.ann_file': f'{root}/annotations/instances_val2017.json',
            }
        ),
    }


def coco_3x(data):
    options = coco(data)
    scale = options.pop('train_dataloader.dataset.pipeline.2.scale')
    return {**options, 'train_dataloader.dataset.pipeline.2.scales': f'[{scale}]'}


def crops(scale):
    """Of a pipeline that draws between resizing, and resizing, cropping, resizing."""
    choice = 'train_dataloader.dataset.pipeline.3.transforms'
    return {
        f'{choice}.0.0.scales': f'[{scale}]',
        f'{choice}.1.0.scales': f'[{scale}]',
        f'{choice}.1.1.crop_size': f'({SIDE // 2},{SIDE})',
        f'{choice}.1.2.scales': f'[{scale}]',
    }


def coco_crops(data):
    options = coco(data)
    scale = options.pop('train_dataloader.dataset.pipeline.2.scale')
    return {**options, **crops(scale)}


def coco_jittered(data):
    options = coco(data)
    scale = options.pop('train_dataloader.dataset.pipeline.2.scale')
    root = options.pop('train_dataloader.dataset.data_root')
    return {
        **options,
        'train_dataloader.dataset.times': 1,
        'train_dataloader.dataset.dataset.data_root': root,
        'train_dataloader.dataset.dataset.pipeline.2.scale': scale,
        'train_dataloader.dataset.dataset.pipeline.3.crop_size': scale,
        'model.data_preprocessor.batch_augments.0.size': scale,
    }


def coco_queries(data):
    options = coco(data)
    scale = options.pop('train_dataloader.dataset.pipeline.2.scale')
    return {
        **options,
        'train_dataloader.dataset.pipeline.3.scale': scale,
        'train_dataloader.dataset.pipeline.4.crop_size': scale,
        'model.data_preprocessor.batch_augments.0.size': scale,
    }


def cityscapes_boxes(data):
    root, scale = data('cityscapes'), f'({2 * SIDE},{SIDE})'
    annotations = f'{root}/annotations/instancesonly_filtered_gtFine_val.json'
    return {
        'train_dataloader.dataset.times': 1,
        'train_dataloader.dataset.dataset.data_root': f'{root}/',
        'train_dataloader.dataset.dataset.pipeline.2.scale': f'[{scale},{scale}]',
        **both(
            {
                'dataloader.dataset.data_root': f'{root}/',
                'dataloader.dataset.pipeline.1.scale': scale,
                'evaluator.ann_file': annotations,
            }
        ),
    }


def cityscapes_instances(data):
    options = cityscapes_boxes(data)
    for split in ('val', 'test'):
        key = f'{split}_evaluator'
        options[f'{key}.0.ann_file'] = options.pop(f'{key}.ann_file')
        options[f'{key}.1.seg_prefix'] = data('cityscapes') / 'gtFine' / 'val'
    return options


def segmentation(root, scale):
    size = f'({SIDE},{SIDE})'
    return {
        'model.data_preprocessor.size': size,
        'train_dataloader.dataset.data_root': root,
        'train_dataloader.dataset.pipeline.2.scale': scale,
        'train_dataloader.dataset.pipeline.3.crop_size': size,
        'default_hooks.logger.interval': 1,
        **both(
            {
                'dataloader.dataset.data_root': root,
                'dataloader.dataset.pipeline.1.scale': scale,
            }
        ),
    }


def ade20k(data):
    return segmentation(data('ade20k'), f'({4 * SIDE},{SIDE})')


def ade20k_queries(data):
    options = ade20k(data)
    del options['train_dataloader.dataset.pipeline.2.scale']
    return {
        **options,
        'train_dataloader.dataset.pipeline.2.scales': f'[{SIDE}]',
        'train_dataloader.dataset.pipeline.2.max_size': 4 * SIDE,
    }


def cityscapes(data):
    return {
        **segmentation(data('cityscapes'), f'({2 * SIDE},{SIDE})'),
        'model.test_cfg.crop_size': f'({SIDE},{SIDE})',
        'model.test_cfg.stride': f'({SIDE // 2},{SIDE // 2})',
    }


def imagenet(data):
    root = data('imagenet')
    return {
        'train_dataloader.dataset.data_root': root,
        'train_dataloader.dataset.pipeline.1.scale': SIDE,
        **both(
            {
                'dataloader.dataset.data_root': root,
                'dataloader.dataset.pipeline.1.scale': SIDE,
                'dataloader.dataset.pipeline.2.crop_size': SIDE,
            }
        ),
    }


KINDS = dict(
    coco=coco,
    coco_3x=coco_3x,
    coco_crops=coco_crops,
    coco_jittered=coco_jittered,
    coco_queries=coco_queries,
    cityscapes_boxes=cityscapes_boxes,
    cityscapes_instances=cityscapes_instances,
    ade20k=ade20k,
    ade20k_queries=ade20k_queries,
    cityscapes=cityscapes,
    imagenet=imagenet,
)
