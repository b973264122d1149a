"""Other people's models: tools/train.py and tools/test.py do to stock models of mmdet,
mmseg and mmpretrain, with their own backbones, what the libraries' tools do, to the
last bit: losses of each step, predictions, metrics, and all that checkpoints hold,
those of a resumed training, too."""

import ast
import gc
import json
import re
import shutil
import sys
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from loading import load_module
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer, MessageHub, MMLogger
from mmengine.registry import HOOKS
from mmengine.runner import CheckpointLoader, Runner
from mmengine.structures import BaseDataElement
from mmengine.visualization import Visualizer
from small_configs import THIN_HEADS, options_of, write_data

from mmlinattn.models import SwinTransformer
from mmlinattn.utils import load_config
from mmlinattn.weights import addresses, convert_back

START = (
    THIN_HEADS
    + """
vit = dict(
    arch=dict(
        embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, _delete_=True
    ),
    img_size=32,
)
stages = dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 4])
swin = dict(arch=dict(stages, _delete_=True), img_size=64)
resnet = dict(depth=18, base_channels=8, init_cfg=None)
warmup = [dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=3)]
thin_resnet = dict(base_channels=8, stem_channels=8)
fpn = dict(in_channels=[8, 16, 32, 64], out_channels=32)
third = dict(in_channels=32, in_index=2, channels=8)
default_hooks = dict(logger=dict(interval=1), recorder=dict(type='Recorder'))
randomness = dict(seed=0)
"""
)
HEADING = re.compile(r'^\[(.+?)\] (\S+)$', re.M)
_, *GROUPS = HEADING.split(Path(__file__).with_name('guest_models.txt').read_text())
CASES = {name: rest for name, *rest in zip(*[iter(GROUPS)] * 3)}
QUICK = ('ViT', 'Swin v2', 'Mask R-CNN with Swin, converted', 'Segformer')
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason='a GPU sums in no fixed order'
)

# What differs between two runs of one program, by the last part of a key.
CHANCE = {'time', 'data_time', 'eta', 'experiment_name', 'timestamp'}
# Files that only our tools write.
OURS = {'curves.png'}


@HOOKS.register_module(force=True)
class Recorder(Hook):
    """Writes the predictions of a validation or a test to a file."""

    def before_val_epoch(self, runner):
        self.predictions = []

    before_test_epoch = before_val_epoch

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.predictions += [x.to_dict() for x in outputs]

    after_test_iter = after_val_iter

    def after_val_epoch(self, runner, metrics=None):
        torch.save(dict(predictions=self.predictions), 'predictions')

    after_test_epoch = after_val_epoch


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """The folder ``data`` of the libraries' configs, and weights as Swin's authors
    publish them."""
    folder = tmp_path_factory.mktemp('data')
    write_data(folder)
    arch = dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 4])
    ours = SwinTransformer(arch, out_indices=(3,))
    weights = {f'backbone.{key}': x for key, x in ours.state_dict().items()}
    weights.update({'head.fc.weight': torch.rand(5, 64), 'head.fc.bias': torch.rand(5)})
    official, _ = convert_back(weights, 'swin')
    torch.save(dict(model=official), folder / 'swin.pth')
    return folder


@pytest.fixture
def run(data, tmp_path, monkeypatch):
    """Trains or tests mine.py in a folder of its own for either kind of tools."""
    gc.freeze()  # as quick_collections does: the libraries are imported only now
    monkeypatch.setenv('LOCAL_RANK', '0')
    loaders = dict(CheckpointLoader._schemes)

    def call(whose, tool, text, *args, **options):
        # both runs see the same paths
        folder, here = tmp_path / whose, tmp_path / 'here'
        if folder.exists():
            folder.rename(here)
        else:
            here.mkdir()
            (here / 'data').symlink_to(data)
            (here / 'mine.py').write_text(text)
        monkeypatch.chdir(here)
        for kind in (MessageHub, MMLogger, Visualizer, *Visualizer.__subclasses__()):
            kind._instance_dict.clear()
        CheckpointLoader._schemes = dict(loaders)
        use = with_our_tools if whose == 'ours' else with_their_tools
        use(monkeypatch, tool, args, options)
        here.rename(folder)
        return left(folder / 'work')

    yield call
    torch.use_deterministic_algorithms(False)


def with_our_tools(monkeypatch, tool, args, options):
    """Each file is read once."""
    paths = []
    read = addresses.read_file

    def read_file(path, *args):
        paths.append(path)
        return read(path, *args)

    monkeypatch.setattr(addresses, 'read_file', read_file)
    given = ['--cfg-options', *(f'{key}={x}' for key, x in options.items())]
    argv = [f'{tool}.py', 'mine.py', *args, '--work-dir', 'work', *given]
    monkeypatch.setattr(sys, 'argv', argv)
    load_module(f'tools/{tool}.py').main()
    monkeypatch.setattr(addresses, 'read_file', read)
    assert len(paths) == len({*paths})


def with_their_tools(monkeypatch, tool, args, options):
    """What the libraries' tools do."""
    cfg = Config.fromfile('mine.py')
    cfg.launcher = 'none'
    cfg.merge_from_dict({key: ast.literal_eval(x) for key, x in options.items()})
    cfg.work_dir = 'work'
    loaders = [cfg.get(f'{name}_dataloader') for name in ('train', 'val', 'test')]
    for loader in loaders if cfg.get('default_scope') == 'mmpretrain' else ():
        if loader is not None:  # of its script, as far as there are no workers
            loader.setdefault('pin_memory', True)
            loader.setdefault('collate_fn', dict(type='default_collate'))
    # MMEngine's own stops on a CPU
    if cfg.optim_wrapper.get('type') == 'AmpOptimWrapper':
        cfg.optim_wrapper.type = 'OptimWrapper'
        del cfg.optim_wrapper['loss_scale']
    if args == ('--resume',):
        cfg.resume, cfg.load_from = True, None
    elif args:
        (cfg.load_from,) = args
    runner = Runner.from_cfg(cfg)
    runner.train() if tool == 'train' else runner.test()


def small(name):
    """The text of a config, and options that make it small."""
    base, lines = CASES[name]
    scope, _, path = base.partition('::')
    base = str(Path(find_spec(scope).origin).parent / '.mim/configs' / path)
    text = f'_base_ = {base!r}\n{START}{lines}'
    Path('mine.py').write_text(text)
    return text, options_of(load_config('mine.py'))


def differences(a, b, place=''):
    """Places where two values differ, in any bit."""
    if type(a) is not type(b):
        return [f'{place}: {type(a).__name__}, {type(b).__name__}']
    if isinstance(a, HistoryBuffer):
        return differences(a.data, b.data, place)
    if isinstance(a, BaseDataElement):
        return differences(a.to_dict(), b.to_dict(), place)
    if hasattr(a, 'to_ndarray'):  # masks of mmdet
        return differences(a.to_ndarray(), b.to_ndarray(), place)
    if isinstance(a, dict):
        if list(a) != list(b):
            return [f'{place}: keys {list(a)}, {list(b)}']
        keys = [key for key in a if str(key).rpartition('/')[2] not in CHANCE]
        inner = [(a[key], b[key], f'{place}.{key}') for key in keys]
        if isinstance(a, OrderedDict):  # versions of modules
            inner.append((vars(a), vars(b), f'{place}: attributes'))
        return [text for x in inner for text in differences(*x)]
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return [f'{place}: lengths {len(a)}, {len(b)}']
        inner = [(x, y, f'{place}.{i}') for i, (x, y) in enumerate(zip(a, b))]
        return [text for x in inner for text in differences(*x)]
    if isinstance(a, torch.Tensor):
        return differences(a.numpy(), b.numpy(), place)
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        same = same and a.tobytes() == b.tobytes()
    else:
        same = a == b or a != a
    return [] if same else [f'{place}: {a!r:.300}, {b!r:.300}']


def left(work):
    """What a run leaves in its folder."""
    # a name that does not depend on the kind of schedule
    last = work / Path((work / 'last_checkpoint').read_text()).name
    shutil.copy(last, work / 'last.pth')
    names = sorted({x.name for x in work.iterdir() if x.suffix} - OURS)
    results: dict = dict(names=names, config=settings((work / 'mine.py').read_text()))
    for path in sorted(work.glob('*.pth')):
        results[path.name] = torch.load(path, weights_only=False)
        results[path.name]['meta']['cfg'] = settings(results[path.name]['meta']['cfg'])
    predictions = work.parent / 'predictions'
    if predictions.exists():
        results['predictions'] = torch.load(predictions, weights_only=False)
        predictions.unlink()
    for i, path in enumerate(sorted(work.rglob('*.json'))):
        lines = path.read_text().splitlines()
        results[f'report {i}'] = [json.loads(line) for line in lines]
    for folder in filter(Path.is_dir, work.iterdir()):
        shutil.rmtree(folder)
    return results


def settings(text):
    """A dumped config. Where ``--resume`` names no checkpoint, ours names the last one
    in it."""
    cfg = Config.fromstring(text, '.py').to_dict()
    return {key: x for key, x in cfg.items() if key != 'load_from'}


@pytest.mark.parametrize(
    'name',
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in CASES],
)
def test_same_as_the_libraries(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    text, options = small(name)
    longer = {
        key: '2' if key == 'train_cfg.max_epochs' else '4'
        for key in options
        if key in ('train_cfg.max_epochs', 'train_cfg.max_iters')
    }
    tested = load_config('mine.py').get('test_cfg') is not None
    steps = [('train', (), options), ('train', ('--resume',), {**options, **longer})]
    if tested:
        steps.append(('test', ('work/last.pth',), options))
    for tool, args, given in steps:
        theirs, ours = (run(x, tool, text, *args, **given) for x in ('theirs', 'ours'))
        assert '\n'.join(differences(theirs, ours)) == ''
        assert ('predictions' in ours) == tested
