"""tools/train.py, tools/test.py and their launchers, up to the start of a run: the
config of the run or, with bad input, one line on stderr that names the fault and the
remedy, exit code 2, nothing written, and no work begun.

Each check has a case that triggers it. A case runs the tool's `main` in this process,
in an empty folder, and ends where a runner is made. `{world}` stands for a folder with
data, checkpoints and two right configs.
"""

import gc
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest
import torch
from loading import ROOT, load_module
from mmengine.config import Config
from mmengine.registry import DATASETS
from mmengine.runner import CheckpointLoader, Runner
from small_configs import CLASSIFIER, RUN, draw_shapes
from torch import nn

from mmlinattn.commands import convert_official
from mmlinattn.engine import PretrainedBackboneHook
from mmlinattn.engine.preflight import build_model
from mmlinattn.models import SOFT
from mmlinattn.runs import training
from mmlinattn.utils import load_config
from mmlinattn.weights import addresses, convert_back, loaders

TOOLS = ROOT / 'tools'
DETECTOR = """
_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'
default_scope = 'mmdet'
model = dict(
    backbone=dict(backbone, _delete_=True),
    neck=dict(in_channels=[8, 16, 24, 32], out_channels=8),
    bbox_head=dict(in_channels=8, stacked_convs=1, feat_channels=8),
)
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='PackDetInputs'),
]
dataset = dict(
    type='CocoDataset',
    data_root='WORLD/coco/',
    ann_file='annotations/instances_train2017.json',
    data_prefix=dict(img='train2017/'),
    pipeline=pipeline,
)
train_dataloader = dict(dataset=dataset, **loading)
val_cfg = None
test_cfg = None
"""


class Code:
    """Creates a file where it is unpickled."""

    def __reduce__(self):
        return open, ('executed', 'w')


def save_checkpoints(folder, model):
    """Writes a whole checkpoint of the classifier, and others that are not."""
    weights = model.state_dict()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1).state_dict()
    classes = DATASETS.get('mmpretrain.ImageNet').METAINFO['classes']
    meta = dict(epoch=1, iter=3, dataset_meta=dict(classes=classes))
    state = dict(optimizer=optimizer, message_hub={}, meta=meta)
    whole = dict(state, state_dict=weights)
    head = {k: x for k, x in weights.items() if k.startswith('head.')}
    deeper = {k.replace('blocks.0', 'blocks.1'): x for k, x in weights.items()}
    for name, changes in dict(
        whole={},
        nan=dict(state_dict={k: x * float('nan') for k, x in weights.items()}),
        head=dict(state_dict=head),
        other=dict(state_dict={f'teacher.{k}': x for k, x in weights.items()}),
        wider=dict(state_dict={k: torch.cat([x, x]) for k, x in head.items()}),
        deeper=dict(state_dict={**weights, **deeper}),
        code=dict(extra=Code()),
        turned=dict(meta=dict(dataset_meta=dict(classes=classes[::-1]))),
    ).items():
        torch.save({**whole, **changes}, folder / f'{name}.pth')
    (folder / 'empty.pth').touch()
    torch.save(dict(state_dict=weights), folder / 'weights.pth')
    del whole['optimizer']
    torch.save(whole, folder / 'anew.pth')


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A folder with data, configs and checkpoints."""
    folder = tmp_path_factory.mktemp('world')
    for layout in ('imagenet', 'coco'):
        draw_shapes(layout, folder / layout, 3)
    for name, text in dict(cls=CLASSIFIER, det=DETECTOR).items():
        text = (RUN + text).replace('WORLD', str(folder))
        (folder / f'{name}.py').write_text(text)
    torch.manual_seed(0)
    save_checkpoints(folder, build_model(load_config(str(folder / 'cls.py'))))
    gc.freeze()  # as quick_collections does: the libraries are imported only now
    return folder


class Began(Exception):
    """A runner is made."""


@pytest.fixture
def use(world, tmp_path, monkeypatch, capsys):
    """Uses a tool up to the beginning of work; returns its exit code and lines. The
    config of the run is ``use.cfg``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setenv('MMLINATTN_TRUST', '')
    for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.delenv(name, raising=False)
    # mm changes them when it reads configs
    monkeypatch.setattr(sys, 'path', list(sys.path))

    def begin(cfg):
        call.cfg = cfg
        raise Began

    monkeypatch.setattr(Runner, 'from_cfg', begin)

    def call(tool, *args):
        args = [str(arg).replace('{world}', str(world)) for arg in args]
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *args])
        before = set(tmp_path.rglob('*'))
        capsys.readouterr()
        code = 0
        try:
            load_module(f'tools/{tool}.py').main()
        except Began:
            pass
        except SystemExit as stop:
            code = stop.code
            # a claimed folder keeps its mark
            left = {*tmp_path.rglob('*pycache*'), *tmp_path.rglob('.lock')}
            assert {*tmp_path.rglob('*')} - before <= left
        return code, capsys.readouterr().err.splitlines()

    return call


@pytest.fixture
def fails(use):
    """Uses a tool wrongly, and looks for words in the line that it ends with."""

    def call(tool, *args, words):
        code, (*notes, line) = use(tool, *args)
        assert code == 2 and line.startswith(f'{tool}.py: error: '), line
        said = tuple(f'{tool}.py: {x}' for x in ('--resume ', 'warning: '))
        assert all(note.startswith(said) for note in notes), notes
        for word in [words] if isinstance(words, str) else words:
            assert word in line, line

    return call


@pytest.fixture
def warns(use):
    """Uses a tool, and looks for words in each line that it writes."""

    def call(tool, *args, words):
        code, lines = use(tool, *args)
        assert code == 0 and lines
        assert all(x.startswith(f'{tool}.py: ') and words in x for x in lines), lines

    return call


@pytest.fixture
def inherit(world):
    """Writes a config that inherits the classifier's."""
    return lambda lines: Path('mine.py').write_text(
        f"_base_ = '{world}/cls.py'\n{lines}\n"
    )


CLS = '{world}/cls.py'
WHOLE = [CLS, '{world}/whole.pth']


@pytest.mark.parametrize(
    'tool, args', [('train', [CLS]), ('train', ['{world}/det.py']), ('test', WHOLE)]
)
def test_good_input(use, tool, args):
    """It passes, so the failures below have their own reasons."""
    assert use(tool, *args) == (0, [])


@pytest.mark.parametrize(
    'text, words',
    [
        ('model = dict(', ['SyntaxError', 'mine.py, line 1']),
        ('x = undefined', "NameError: name 'undefined' is not defined"),
        ("_base_ = './gone.py'", ['inherits a missing config', 'gone.py']),
        ("open('mmlinattn/.mim/model-index.yml')", 'pip install -e .'),
        ("custom_imports = dict(imports=['gone_module'])", 'gone_module'),
        ('x = 3', 'model: '),
        ('model = 3', 'model: '),
    ],
)
def test_config_that_can_not_be_read(fails, text, words):
    Path('mine.py').write_text(text)
    fails('train', 'mine.py', words=['mine.py', *([words] * isinstance(words, str))])


# Lines of a config that inherits the classifier's, and words of the error.
REFUSED = [
    ('train_dataloader = dict(dataset=dict(data_root="x"))', 'train_dataloader', 'x/'),
    ('model = dict(head=dict(num_classes=3))', 'num_classes=3, so it never learns'),
    ('default_hooks = dict(chekpoint=dict(interval=2))', 'default_hooks.checkpoint?'),
    ('optim_wrapper = dict(optimizer=dict(lr="1e-4x"))', "lr='1e-4x' is text, not a"),
    ('train_cfg = dict(max_epochs="3x")', "max_epochs='3x' must be a positive"),
    ('train_dataloader = dict(batch_size=0)', 'train_dataloader: ', 'batch_size=0'),
    ('train_dataloader = dict(persistent_workers=True)', 'train_dataloader: '),
    ('train_cfg = dict(val_interval=0)', 'val_interval=0 must be a positive integer'),
    ('param_scheduler = [dict(type="LinearLR", begin=3, end=2)]', 'param_scheduler: '),
    ('val_evaluator = dict(type="SingleLabelMetric", items=("x",))', 'val_evaluator: '),
    ('model = dict(backbone=dict(init_cfg=dict(type="Pretraned")))', 'Pretrained'),
    ('val_evaluator = dict(metrics="x")', 'val_evaluator.metrics=', 'no such option'),
]
# Options, and the likely ones.
MISSPELLED = {
    'model.type=ImageClasifier': 'ImageClassifier',
    'model.backbone.drop_path=0.1': 'drop_path_rate',
    'model.backbone.attention.type=ELFAT': 'ELFATT',
    'model.head.num_clases=3': 'num_classes',
    'data_preprocessor.stdd=1': 'std',
    'train_dataloader.batchsize=4': 'batch_size',
    'train_dataloader.sampler.shufle=True': 'shuffle',
    'train_dataloader.dataset.type=ImageNett': 'ImageNet',
    'train_dataloader.dataset.pipeline.0.type=LoadImage': 'LoadImageFromFile',
    'optim_wrapper.type=OptimWraper': 'OptimWrapper',
    'optim_wrapper.optimizer.type=Sgd': 'SGD',
    'optim_wrapper.optimizer.weightdecay=0.1': 'weight_decay',
    'optim_wrapper.clip_grad.maxnorm=1': 'max_norm',
    'param_scheduler.0.type=LinearRL': 'LinearLR',
    'param_scheduler.0.start=0.1': 'start_factor',
    'train_cfg.max_epoch=3': 'max_epochs',
    'train_cfg.val_intervall=3': 'val_interval',
    'val_evaluator.type=Acuracy': 'Accuracy',
    'val_evaluator.top_k=1': 'topk',
    'default_hooks.logger.intervall=1': 'interval',
    'default_hooks.checkpoint.max_keep_ckpt=1': 'max_keep_ckpts',
    'default_hooks.checkpoint.type=mmlinattn.AtomicCheckpoint': 'AtomicCheckpointHook',
    'default_hooks.checkpoint.save_best=top1': 'accuracy/top1',
    'randomness.sed=0': 'seed',
    'env_cfg.mp_cfg.start_method=fork': 'mp_start_method',
    'log_processor.window=3': 'window_size',
    'visualizer.vis_backends.0.type=TensorBoardVisBackend': 'TensorboardVisBackend',
}


@pytest.mark.parametrize('lines, words', [(lines, words) for lines, *words in REFUSED])
def test_part_that_can_not_be_built(fails, inherit, lines, words):
    inherit(lines)
    fails('train', 'mine.py', words=['mine.py', *words])


@pytest.mark.parametrize('option, name', MISSPELLED.items())
def test_misspelled_option(fails, inherit, option, name):
    """One line has its key and the likely name, before anything is written."""
    inherit(
        "log_processor = dict(by_epoch=True)\nvisualizer = dict(type='Visualizer', "
        "vis_backends=[dict(type='LocalVisBackend')])\nrandomness = dict(seed=0)"
    )
    words = option.partition('=')[0], f"did you mean '{name}'?"
    fails('train', 'mine.py', '--cfg-options', option, words=words)


def test_misspelled_option_of_a_test(fails):
    for option, name in {
        'test_dataloader.batchsize=4': 'batch_size',
        'test_evaluator.top_k=1': 'topk',
        'test_cfg.fp_16=True': 'fp16',
    }.items():
        words = option.partition('=')[0], f"did you mean '{name}'?"
        fails('test', *WHOLE, '--cfg-options', option, words=words)


# Those that may be meant, and words of the warning.
DOUBTED = [
    ('', '--cfg-options something=1', 'neither the config nor'),
    ('model = dict(head=dict(num_classes=1001))', '', 'the head has num_classes=1001'),
    ('default_hooks = dict(ema=dict(type="EMAHook", begin_epoc=1))', '', 'begin_epoch'),
]
if not torch.cuda.is_available():
    DOUBTED.append(('', '--amp', 'mixed precision needs a GPU'))


@pytest.mark.parametrize('lines, options, words', DOUBTED)
def test_part_that_may_be_meant(warns, inherit, lines, options, words):
    inherit(lines)
    warns('train', 'mine.py', *options.split(), words=words)


@pytest.mark.parametrize(
    'name, content, words',
    [
        ('annotations/instances_train2017.json', b'{"images": [', 'JSONDecodeError'),
        ('train2017/*.jpg', b'\xff\xd8\xff\xe0' * 9, 'train_dataloader: '),
    ],
)
def test_damaged_data(fails, world, tmp_path_factory, name, content, words):
    folder = tmp_path_factory.mktemp('copy') / 'coco'
    shutil.copytree(world / 'coco', folder)
    for path in folder.glob(name):
        path.write_bytes(content)
    option = f'train_dataloader.dataset.data_root={folder}'
    words = 'train_dataloader', words
    fails('train', '{world}/det.py', '--cfg-options', option, words=words)


def test_checks_that_are_not_wanted(use, inherit, monkeypatch):
    inherit('model = dict(head=dict(num_classes=3))')
    assert use('train', 'mine.py', '--no-preflight') == (0, [])
    monkeypatch.setenv('RANK', '1')  # the first process looks for all
    assert use('train', 'mine.py') == (0, [])


# ---------------------------------------------------------------------- checkpoints
LOAD, RESUME = '--cfg-options load_from=', '--resume '
PRETRAINED = '--cfg-options pretrained='


@pytest.mark.parametrize(
    'how, name, words',
    [
        ('', 'gone', "checkpoint='{world}/gone.pth': there is no such file"),
        ('', 'empty', 'is empty'),
        ('', 'code', ('io.open', '--trust')),
        ('', 'nan', 'with NaN or infinite values'),
        ('', 'head', ('missing', 'give --allow-mismatch')),
        ('', 'deeper', 'that the model has no place for'),
        ('', 'turned', "in place of 'tench"),
        (LOAD, 'gone', "load_from='{world}/gone.pth': there is no such file"),
        (LOAD, 'code', ('io.open', '--trust')),
        (LOAD, 'other', 'missing'),
        (LOAD, 'nan', 'with NaN or infinite values'),
        (RESUME, 'empty', 'is empty'),
        (RESUME, 'head', 'missing'),
        (RESUME, 'weights', 'has no training state'),
        (PRETRAINED, 'gone', "pretrained='{world}/gone.pth': there is no such file"),
        (PRETRAINED, 'other', "pretrained='{world}/other.pth': "),
        (PRETRAINED, 'nan', 'NaN or infinite values in'),
    ],
)
def test_checkpoint(fails, world, how, name, words):
    path = f'{{world}}/{name}.pth'
    args = ['train', CLS, *f'{how}{path}'.split()] if how else ['test', CLS, path]
    words = [words] if isinstance(words, str) else words
    fails(*args, words=[f'{name}.pth', *(x.format(world=world) for x in words)])
    assert not Path('executed').exists()


@pytest.mark.parametrize(
    'how, name, words',
    [
        (LOAD, 'head', 'entries of the model are loaded'),
        (f'--allow-mismatch {LOAD}', 'nan', 'with NaN or infinite values'),
        (f'--allow-mismatch {RESUME}', 'wider', 'of other shapes'),
        (RESUME, 'anew', 'has no state of the optimizer: it begins anew'),
        ('--allow-mismatch ', 'head', 'does not fit this model'),
        ('--allow-mismatch ', 'turned', "in place of 'tench"),
    ],
)
def test_mismatch_that_is_meant(warns, how, name, words):
    tool = 'train' if '=' in how or RESUME in how else 'test'
    warns(tool, CLS, *f'{how}{{world}}/{name}.pth'.split(), words=words)


def test_weights_are_read_before_data_are_looked_for(fails):
    options = 'train_dataloader.dataset.data_root=gone', 'pretrained={world}/empty.pth'
    fails('train', CLS, '--cfg-options', *options, words='empty.pth')


@pytest.mark.parametrize('how', ['', LOAD, RESUME, PRETRAINED])
def test_trust(use, how):
    tool = 'train' if how else 'test'
    args = [tool, CLS, *f'{how}{{world}}/code.pth'.split()]
    assert use(*args, '--trust') == (0, [])
    assert Path('executed').exists()


# -------------------------------------------------------------------- other arguments
@pytest.mark.parametrize(
    'tool, options, words',
    [
        ('train', '--cfg-options pretraned=x', "did you mean 'pretrained'?"),
        ('train', '--cfg-options width', "'width' is not KEY=VALUE"),
        (
            'train',
            '--cfg-options optim_wrapper.optimizer.lr=1e-4x',
            "optimizer.lr=1e-4x: '1e-4x' is text, not a number as 0.1",
        ),
        ('train', '--cfg-options pipeline.9.type=X', '--cfg-options do not fit'),
        (
            'train',
            '--cfg-options default_hooks.pretrained=None pretrained=x.pth',
            "pretrained='x.pth' would have no effect",
        ),
        ('train', '--auto-scale-lr', 'base_batch_size'),
        ('train', '--work-dir mine.txt', "work_dir='mine.txt' can not be written"),
        ('test', '--out x.json', '.pkl'),
        ('test', '--show-dir mine.txt', 'is a file, not a folder'),
        ('test', '--show-dir folder', 'folder is not empty: give --overwrite'),
        ('test', '--show-dir new', 'needs default_hooks.visualization'),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason='launchers work with GPUs')
def test_options(fails, tool, options, words):
    Path('folder').mkdir()
    for path in ('mine.txt', 'folder/mine'):
        Path(path).write_text('mine')
    args = [CLS] if tool == 'train' else WHOLE
    fails(tool, *args, *options.split(), words=words)


class Frozen(nn.BatchNorm2d):
    """A norm that stays in eval mode."""

    def train(self, mode=True):
        return super().train(False)


@pytest.mark.parametrize(
    'size, batch, norm, right',
    [
        (1, 1, nn.BatchNorm2d, False),
        (2, 1, nn.BatchNorm2d, True),
        (1, 2, nn.BatchNorm2d, True),
        (1, 1, Frozen, True),
    ],
)
def test_batch_norm_of_one_value(size, batch, norm, right):
    """As torch refuses it in the first step."""
    pool = nn.AdaptiveAvgPool2d(size), nn.Conv2d(3, 3, 1), norm(3)
    model = nn.Sequential(nn.Sequential(*pool))
    cfg = Config(dict(train_dataloader=dict(batch_size=batch), launcher='none'))
    for check in (
        lambda: training.check_batch(cfg, model),
        lambda: model(torch.rand(batch, 3, 4, 4)),
    ):
        with nullcontext() if right else pytest.raises(ValueError, match='more'):
            check()


# ------------------------------------------------------------- the config of the run
def test_train_options(use, inherit, world):
    inherit('auto_scale_lr = dict(enable=False, base_batch_size=16)')
    use('train', 'mine.py')
    cfg = use.cfg
    assert cfg.work_dir == 'work_dirs/mine' and cfg.launcher == 'none'
    assert not cfg.resume and cfg.load_from is None
    args = ['--work-dir', 'here', '--auto-scale-lr', '--launcher', 'pytorch']
    use('train', 'mine.py', '--resume', WHOLE[1], *args)
    cfg = use.cfg
    assert cfg.work_dir == 'here' and cfg.launcher == 'pytorch'
    assert cfg.auto_scale_lr.enable
    assert cfg.resume and cfg.load_from == f'{world}/whole.pth'


BY_CONFIG = '--cfg-options optim_wrapper.type=AmpOptimWrapper'


@pytest.mark.parametrize('words', ['--amp --cfg-options', BY_CONFIG])
def test_mixed_precision(use, monkeypatch, words):
    for device, kind in dict(cuda='AmpOptimWrapper', cpu='OptimWrapper').items():
        monkeypatch.setattr(training, 'get_device', lambda device=device: device)
        options = *words.split(), 'optim_wrapper.dtype=bfloat16'
        use('train', CLS, '--no-preflight', *options)
        assert use.cfg.optim_wrapper.type == kind


@pytest.mark.parametrize('option', ['--resume', '--cfg-options resume=True'])
def test_resume_from_newest(use, world, option):
    work = Path('work_dirs/cls')
    work.mkdir(parents=True)
    for i in (1, 2):
        shutil.copy(world / 'whole.pth', work / f'epoch_{i}.pth')
    _, lines = use('train', CLS, *option.split())
    assert use.cfg.resume and use.cfg.load_from == f'{work}/epoch_2.pth'
    assert lines[-1].endswith('epoch_2.pth')


def test_resume_from_nothing(use, world):
    _, lines = use('train', CLS, '--resume', *f'{LOAD}{WHOLE[1]}'.split())
    assert not use.cfg.resume and use.cfg.load_from == f'{world}/whole.pth'
    assert 'finds no checkpoint in work_dirs/cls' in lines[0]


def test_what_the_checks_found_is_the_start(use, world, monkeypatch):
    """It is not read and compared again."""

    def train():
        raise Began

    hook = PretrainedBackboneHook()
    runner = Namespace(train=train, hooks=[hook])
    monkeypatch.setattr(Runner, 'from_cfg', lambda cfg: runner)
    read = Mock(wraps=addresses.read_file)
    monkeypatch.setattr(addresses, 'read_file', read)
    whole, work = WHOLE[1].format(world=world), ('--work-dir', '.')
    use('train', CLS, *work, *f'{PRETRAINED}{whole}'.split())
    weights = torch.load(whole)['state_dict']
    assert {f'backbone.{x}' for x in hook.comparison.loaded} < weights.keys()
    for how in (LOAD, RESUME):
        use('train', CLS, *work, *f'{how}{whole}'.split())
        CheckpointLoader.load_checkpoint(whole)
    monkeypatch.setattr(runner, 'test', train, raising=False)
    use('test', *WHOLE, *work)
    CheckpointLoader.load_checkpoint(whole)
    assert read.call_count == 4
    # several processes wait for each other before they read
    hook.comparison = None
    use('train', CLS, *work, '--launcher', 'pytorch', *f'{PRETRAINED}{whole}'.split())
    assert hook.comparison is None
    use('train', CLS, *work, '--launcher', 'pytorch', *f'{LOAD}{whole}'.split())
    CheckpointLoader.load_checkpoint(whole)
    assert read.call_count == 7


def test_no_network(fails, monkeypatch):
    text = "pretrained='https://host/x.pth' cannot be downloaded"

    def train():
        raise ConnectionError(text)

    runner = Namespace(train=train, hooks=[])
    monkeypatch.setattr(Runner, 'from_cfg', lambda cfg: runner)
    fails('train', CLS, '--work-dir', '.', words=text)


@pytest.mark.parametrize(
    'hook, folder',
    [
        ('mmdet.DetVisualizationHook', 'default_hooks.visualization.test_out_dir'),
        ('mmseg.SegVisualizationHook', 'visualizer.save_dir'),
        ('VisualizationHook', 'default_hooks.visualization.out_dir'),
    ],
)
def test_drawing(use, inherit, hook, folder):
    lines = f'default_hooks = dict(visualization=dict(type={hook!r}))'
    inherit(f"{lines}\nvisualizer = dict(type='Visualizer')")
    use('test', 'mine.py', WHOLE[1], '--show-dir', 'pictures')
    cfg, drawing = use.cfg, use.cfg.default_hooks.visualization
    assert drawing.get('draw') or drawing.get('enable')
    for key in folder.split('.'):
        cfg = cfg[key]
    assert cfg == str(Path('pictures').absolute())


def test_out(use):
    args = [*WHOLE, '--no-preflight', '--cfg-options']
    use('test', *args, 'default_scope=mmdet', '--out', 'x.pkl')
    kinds = [x['type'] for x in use.cfg.test_evaluator]
    assert kinds == ['Accuracy', 'mmdet.DumpDetResults']
    use('test', *args, 'default_scope=mmseg', '--out', 'x')
    assert use.cfg.test_evaluator.output_dir == 'x'


# ------------------------------------------------------------------------- launchers
@pytest.mark.parametrize(
    'script, args, program, expected',
    [
        ('dist_train', 'c.py 2', 'python', '=2 {}/train.py c.py --launcher pytorch'),
        ('dist_test', 'c.py x 2', 'python', '=2 {}/test.py c.py x --launcher pytorch'),
        ('slurm_train', 'p j c.py', 'srun', '-u {}/train.py c.py --launcher slurm'),
        ('slurm_test', 'p j c.py x', 'srun', '-u {}/test.py c.py x --launcher slurm'),
    ],
)
def test_launchers(tmp_path, monkeypatch, script, args, program, expected):
    fake = tmp_path / program
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ('c.py', 'x'):
        Path(name).touch()
    env = dict(os.environ, PATH=f'{tmp_path}:{os.environ["PATH"]}')
    run = partial(subprocess.run, capture_output=True, text=True, env=env)
    done = run(['bash', TOOLS / f'{script}.sh', *args.split(), '--more'], check=True)
    assert done.stdout.strip().endswith(f'{expected.format(TOOLS)} --more')
    done = run(['bash', TOOLS / f'{script}.sh'])
    assert done.returncode == 2 and done.stderr.startswith('usage: ')


@pytest.mark.parametrize(
    'script, args, message',
    [
        ('dist_train.sh', ['no.py', '2'], "config='no.py': there is no such file"),
        ('dist_test.sh', [__file__, 'x', '2'], "checkpoint='x': there is no such file"),
        ('dist_test.sh', ['c.py', 'x', '0'], "GPUS must be a positive number, got '0'"),
    ],
)
def test_launchers_want_files_and_a_number(script, args, message):
    command = ['bash', TOOLS / script, *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ''
    assert done.stderr == f'{script}: error: {message}\n'


# ---------------------------------------------------------------- remedies that work
HOOK = "default_hooks = dict(pretrained=dict(type='mmlinattn.PretrainedBackboneHook'))"
NO_HOOK = 'default_hooks = dict(pretrained=None)'
INIT = 'model.backbone.init_cfg'
NAMES = 'train_dataloader = dict(dataset=dict(metainfo=dict(classes=({}))))'
MORE = 'model = dict(head=dict(num_classes=1001))\n'


class Remedy(NamedTuple):
    """Lines of a config and options that fail, and the same as the error advises."""

    tool: str
    lines: str
    options: str
    advice: str
    then_lines: str
    then_options: str
    base: str = 'cls'


REMEDIES = [
    Remedy(
        *('train', '', '--resume {world}/weights.pth'),
        '--cfg-options load_from={world}/weights.pth',
        *('', '--cfg-options load_from={world}/weights.pth'),
    ),
    Remedy(
        *('train', '', '--resume {world}/head.pth', 'give --allow-mismatch'),
        *('', '--resume {world}/head.pth --allow-mismatch'),
    ),
    Remedy(
        *('train', '', '--cfg-options load_from={world}/nan.pth'),
        'give --allow-mismatch',
        *('', '--allow-mismatch --cfg-options load_from={world}/nan.pth'),
    ),
    Remedy(
        *('test', '', '{world}/head.pth', 'give --allow-mismatch'),
        *('', '{world}/head.pth --allow-mismatch'),
    ),
    Remedy(
        *('test', '', '{world}/turned.pth', 'give --allow-mismatch'),
        *('', '{world}/turned.pth --allow-mismatch'),
    ),
    Remedy(
        *('test', '', '{world}/code.pth', 'also take --trust'),
        *('', '{world}/code.pth --trust'),
    ),
    Remedy(
        *('train', NO_HOOK, f'--cfg-options pretrained={WHOLE[1]}'),
        'Add default_hooks=dict(',
        *(HOOK, f'--cfg-options pretrained={WHOLE[1]}'),
    ),
    Remedy(
        *('train', NO_HOOK, f'--cfg-options pretrained={WHOLE[1]}'),
        f'name the weights in {INIT}',
        NO_HOOK,
        f'--cfg-options {INIT}.type=Pretrained {INIT}.checkpoint={WHOLE[1]}',
    ),
    Remedy(
        *('train', MORE + HOOK),
        f'--cfg-options default_hooks.pretrained.head=True pretrained={WHOLE[1]}',
        'default_hooks.pretrained.head=False',
        MORE + HOOK,
        f'--cfg-options default_hooks.pretrained.head=False pretrained={WHOLE[1]}',
    ),
    Remedy(
        *('train', 'model = dict(neck=dict(in_channels=[16, 24, 32]))', ''),
        'set model.backbone.out_indices=(1, 2, 3)',
        'model = dict(neck=dict(in_channels=[16, 24, 32]))',
        '--cfg-options model.backbone.out_indices=(1,2,3)',
        'det',
    ),
    Remedy(
        *('train', 'model = dict(neck=dict(in_channels=[64, 128, 256]))', ''),
        'out_indices=(1, 2, 3) and model.neck.in_channels=[16, 24, 32]',
        'model = dict(neck=dict(in_channels=[16, 24, 32]))',
        '--cfg-options model.backbone.out_indices=(1,2,3)',
        'det',
    ),
    Remedy(
        *('train', 'model = dict(neck=dict(in_channels=[8, 16, 32, 64]))', ''),
        'set model.neck.in_channels=[8, 16, 24, 32]',
        *('model = dict(neck=dict(in_channels=[8, 16, 24, 32]))', '', 'det'),
    ),
    Remedy(
        *('train', NAMES.format("'mine',"), '', 'in metainfo=dict(classes=...)'),
        *(NAMES.format("'kite', 'frisbee', 'sports ball'"), '', 'det'),
    ),
    Remedy(
        *('train', 'model = dict(head=dict(num_classes=3))', '', 'num_classes=1000'),
        *('model = dict(head=dict(num_classes=1000))', ''),
    ),
    Remedy(
        *('train', '', '--auto-scale-lr', 'needs auto_scale_lr.base_batch_size'),
        *('auto_scale_lr = dict(base_batch_size=16)', '--auto-scale-lr'),
    ),
    Remedy(
        *('train', '', '--cfg-options pretraned=None', "did you mean 'pretrained'?"),
        *('', '--cfg-options pretrained=None'),
    ),
    Remedy(
        *('test', '', f'{WHOLE[1]} --out x.json', 'must be a .pkl'),
        *('', f'{WHOLE[1]} --out x.pkl'),
    ),
    Remedy(
        *('test', '', f'{WHOLE[1]} --show-dir new'),
        '--show-dir needs default_hooks.visualization',
        "default_hooks = dict(visualization=dict(type='VisualizationHook'))",
        f'{WHOLE[1]} --show-dir new',
    ),
]


@pytest.mark.parametrize('remedy', REMEDIES, ids=lambda x: x.advice)
def test_remedy(fails, use, world, remedy):
    """What the error advises works."""

    def run(lines, options):
        text = f"_base_ = '{world}/{remedy.base}.py'\n{lines}\n"
        Path('mine.py').write_text(text)
        return remedy.tool, 'mine.py', *options.split()

    advice = remedy.advice.format(world=world)
    fails(*run(remedy.lines, remedy.options), words=advice)
    code, _ = use(*run(remedy.then_lines, remedy.then_options))
    assert code == 0


def test_raw_official_file(fails, use, world, monkeypatch):
    """It is not for a whole detector, but for its backbone or the converter."""
    cfg = load_config(f'{world}/det.py').model.backbone
    weights = SOFT(cfg.arch).state_dict()
    official, _ = convert_back({f'backbone.{k}': x for k, x in weights.items()}, 'soft')
    torch.save(official, 'raw.pth')
    lines = "model = dict(backbone=dict(type='mmlinattn.SOFT'))"
    text = f"_base_ = '{world}/det.py'\n{lines}"
    Path('mine.py').write_text(text)
    words = 'pretrained=CHECKPOINT', 'mim run mmlinattn convert_official soft SRC DST'
    fails('train', 'mine.py', '--cfg-options', 'load_from=raw.pth', words=words)
    assert use('train', 'mine.py', '--cfg-options', 'pretrained=raw.pth') == (0, [])
    convert_official.main(['soft', 'raw.pth', 'ours.pth'])
    assert use('train', 'mine.py', '--cfg-options', 'load_from=ours.pth')[0] == 0


NOWHERE = 'http://127.0.0.1:9/weights.pth'
STARTS = dict(type='Pretrained', checkpoint=NOWHERE)
NAMED = dict(STARTS, checkpoint='torchvision://resnet18')


@pytest.mark.parametrize(
    'lines, key, without',
    [
        (f'init_cfg={STARTS}', f'{INIT}.checkpoint', INIT),
        (f'init_cfg={NAMED}', f'{INIT}.checkpoint', INIT),
        (f'init_cfg={[STARTS]}', f'{INIT}.0.checkpoint', INIT),
        (f'init_cfg=None, pretrained={NOWHERE!r}', *['model.backbone.pretrained'] * 2),
    ],
)
def test_weights_of_a_stock_config_that_cannot_be_had(
    fails, use, world, monkeypatch, lines, key, without
):
    """The error names the key where the address stands, and what to set there."""
    monkeypatch.setenv('no_proxy', '*')
    monkeypatch.setattr(torch.hub, '_hub_dir', str(world / 'hub'))
    table = dict(resnet18=NOWHERE)
    monkeypatch.setitem(loaders.TABLES, 'torchvision://', lambda: table)

    def make_runner(cfg):
        def train():
            build_model(cfg).init_weights()
            raise Began

        return Namespace(train=train, hooks=[])

    monkeypatch.setattr(Runner, 'from_cfg', make_runner)
    resnet = f"dict(type='mmdet.ResNet', depth=18, base_channels=2, {lines})"
    path = Path('mine.py')
    path.write_text(
        f"_base_ = '{world}/det.py'\naddress = {NOWHERE!r}\n"
        f'model = dict(backbone=dict({resnet}, _delete_=True), '
        'neck=dict(in_channels=[2, 4, 8, 16]))'
    )
    command = 'train', 'mine.py', '--work-dir', '.', '--cfg-options'
    words = f'--cfg-options {key}=PATH', f', or {without}=None to start without it'
    fails(*command, 'pretrained=None', words=words)
    assert use(*command, f'{without}=None') == (0, [])
    torch.save(build_model(load_config('mine.py')).backbone.state_dict(), 'there.pth')
    assert use(*command, f'{key}=there.pth') == (0, [])


@pytest.mark.parametrize('key', ['load_from', 'pretrained'])
def test_weights_that_cannot_be_had(fails, use, world, monkeypatch, key):
    monkeypatch.setenv('no_proxy', '*')
    monkeypatch.setattr(torch.hub, '_hub_dir', str(world / 'hub'))
    words = f'--cfg-options {key}=PATH, or {key}=None to start without it'
    fails('train', CLS, '--cfg-options', f'{key}={NOWHERE}', words=words)
    for option in ('None', WHOLE[1]):
        assert use('train', CLS, '--cfg-options', f'{key}={option}') == (0, [])
