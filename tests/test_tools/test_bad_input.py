"""What every tool does with bad input: one line on stderr that names the thing and what
would be right, exit code 2, nothing written, and no work begun.

The tables below have a line for each wrong use. A case runs the tool's `main` in this
process, in a folder of its own, with a runner that must not be made. `{world}` stands
for a folder with data and good configs, `mine.py` for a config that inherits one of
them and says what is wrong.
"""

import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.logging import MessageHub
from mmengine.runner import CheckpointLoader, Runner

from mmlinattn.engine import preflight
from mmlinattn_tools.cli import Parser

pytestmark = pytest.mark.modern

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {
    path.stem: path
    for path in (
        ROOT / 'tools/train.py',
        ROOT / 'tools/test.py',
        ROOT / 'tools/analysis_tools/get_flops.py',
        ROOT / 'tools/model_converters/convert_official.py',
        ROOT / 'tools/dataset_converters/make_shapes.py',
        ROOT / 'tools/misc/quickstart.py',
    )
}
RUN = """
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1))
param_scheduler = [dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2)]
train_cfg = dict(by_epoch=True, max_epochs=1)
val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    logger=dict(type='LoggerHook'),
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook'),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook'),
)
pretrained = None
load_from = None
resume = False
backbone = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4]),
)
"""
CONFIGS = {
    'cls': """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=backbone,
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=1000, in_channels=32),
)
data_preprocessor = dict(num_classes=1000, mean=[120.0] * 3, std=[60.0] * 3)
pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
dataset = dict(type='ImageNet', data_root='{world}/imagenet', pipeline=pipeline)
evaluator = dict(type='Accuracy')
""",
    'det': """
default_scope = 'mmdet'
model = dict(
    type='RetinaNet',
    data_preprocessor=dict(type='DetDataPreprocessor', pad_size_divisor=32),
    backbone=backbone,
    neck=dict(type='FPN', in_channels=[8, 16, 24, 32], out_channels=8, num_outs=5),
    bbox_head=dict(
        type='RetinaHead',
        num_classes=80,
        in_channels=8,
        stacked_convs=1,
        feat_channels=8,
        anchor_generator=dict(
            type='AnchorGenerator',
            scales=[4],
            ratios=[1.0],
            strides=[4, 8, 16, 32, 64],
        ),
        bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
        loss_cls=dict(type='FocalLoss'),
        loss_bbox=dict(type='L1Loss'),
    ),
)
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='PackDetInputs'),
]
dataset = dict(type='CocoDataset', data_root='{world}/coco/', pipeline=pipeline)
evaluator = dict(
    type='CocoMetric',
    ann_file='{world}/coco/annotations/instances_val2017.json',
    metric='bbox',
)
""",
    'seg': """
default_scope = 'mmseg'
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', size=(64, 64)),
    backbone=backbone,
    decode_head=dict(
        type='FCNHead', num_classes=150, in_channels=32, in_index=3, channels=8,
        num_convs=1, loss_decode=dict(type='CrossEntropyLoss'),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', reduce_zero_label=True),
    dict(type='PackSegInputs'),
]
dataset = dict(type='ADE20KDataset', data_root='{world}/ade20k', pipeline=pipeline)
evaluator = dict(type='IoUMetric')
""",
}
SPLITS = {
    'cls': ("split='train'", "split='val'"),
    'det': tuple(
        f"ann_file='annotations/instances_{split}2017.json', "
        f"data_prefix=dict(img='{split}2017/')"
        for split in ('train', 'val')
    ),
    'seg': tuple(
        f"data_prefix=dict(img_path='images/{split}', "
        f"seg_map_path='annotations/{split}')"
        for split in ('training', 'validation')
    ),
}
LOADERS = """
loading = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False)
)
train_dataloader = dict(dataset=dict({train}, **dataset), **loading)
val_dataloader = dict(dataset=dict({val}, **dataset), **loading)
test_dataloader = val_dataloader
val_evaluator = evaluator
test_evaluator = evaluator
"""


def load_tool(name):
    spec = importlib.util.spec_from_file_location(f'bad_{name}', TOOLS[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Code:
    """Creates a file where it is unpickled."""

    def __reduce__(self):
        return open, ('executed', 'w')


def save_checkpoints(folder, model):
    """Writes checkpoints of the classifier that are fine, and others that are not."""
    weights = model.state_dict()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    whole = dict(
        state_dict=weights,
        optimizer=optimizer.state_dict(),
        message_hub=MessageHub('x').state_dict(),
        meta=dict(epoch=1, iter=3),
    )

    def save(name, **changes):
        torch.save(dict(whole, **changes), folder / f'{name}.pth')

    save('whole')
    data = (folder / 'whole.pth').read_bytes()
    (folder / 'empty.pth').touch()
    (folder / 'garbage.pth').write_bytes(b'\0garbage' * 99)
    (folder / 'truncated.pth').write_bytes(data[: len(data) // 2])
    (folder / 'page.pth').write_text('<html>404</html>')
    save('nan', state_dict={k: x * float('nan') for k, x in weights.items()})
    head = {k: x for k, x in weights.items() if k.startswith('head.')}
    save('head', state_dict=head)
    save('bare', state_dict={})
    torch.save(dict(epoch=3, best=0.5), folder / 'none.pth')
    torch.save([1, 2], folder / 'list.pth')
    save('other', state_dict={f'teacher.{k}': x for k, x in weights.items()})
    save(
        'wider',
        state_dict={k: torch.cat([x, x]) if x.dim() else x for k, x in weights.items()},
    )
    deeper = {k.replace('blocks.0', 'blocks.1'): x for k, x in weights.items()}
    save('deeper', state_dict={**weights, **deeper})
    save(
        'shallow', state_dict={k: x for k, x in weights.items() if 'stages.3' not in k}
    )
    save('code', extra=Code())
    save('beyond', meta=dict(epoch=10**12, iter=3))
    save('ints', state_dict={**weights, 3: torch.ones(1)})
    torch.save(dict(state_dict=weights), folder / 'weights_only.pth')
    official = {'patch_embed1.proj.weight': torch.ones(8, 3, 4, 4)}
    torch.save(official, folder / 'official.pth')


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A folder with data, configs and checkpoints."""
    folder = tmp_path_factory.mktemp('world')
    make_shapes = load_tool('make_shapes')
    for layout in ('imagenet', 'coco', 'ade20k'):
        counts = '--num-train', '3', '--num-val', '2', '--size', '48', '48'
        make_shapes.main(['--layout', layout, '--out', str(folder / layout), *counts])
    for name, text in CONFIGS.items():
        train, val = SPLITS[name]
        loaders = LOADERS.replace('{train}', train).replace('{val}', val)
        text = (RUN + text + loaders).replace('{world}', str(folder))
        (folder / f'{name}.py').write_text(text)
    from mmlinattn.engine.preflight import build_model
    from mmlinattn.utils import load_config

    torch.manual_seed(0)
    save_checkpoints(folder, build_model(load_config(str(folder / 'cls.py'))))
    gc.freeze()  # as quick_collections does: the libraries are imported only now
    return folder


@pytest.fixture
def use(world, tmp_path, monkeypatch, capsys):
    """Uses a tool, and returns its exit code and what it wrote on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setenv('MMLINATTN_TRUST', '')
    for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(CheckpointLoader, '_schemes', dict(CheckpointLoader._schemes))

    def no_work(*args, **kwargs):
        raise AssertionError('work began')

    monkeypatch.setattr(Runner, 'from_cfg', no_work)
    # mm changes them when it reads configs
    monkeypatch.setattr(sys, 'path', list(sys.path))

    def call(tool, *args):
        args = [str(arg).replace('{world}', str(world)) for arg in args]
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *args])
        before = snapshot(tmp_path)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            load_tool(tool).main()
        Parser.debug = False
        assert snapshot(tmp_path) == before, 'something was written'
        return stop.value.code, capsys.readouterr().err

    return call


@pytest.fixture
def begin(use, world, monkeypatch, capsys):
    """Uses a tool up to where work begins, and returns what it wrote on stderr."""

    def call(tool, *args):
        args = [str(arg).replace('{world}', str(world)) for arg in args]
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *args])
        capsys.readouterr()
        with pytest.raises(AssertionError, match='work began'):
            load_tool(tool).main()
        return capsys.readouterr().err

    return call


def snapshot(folder):
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob('*')
        if '__pycache__' not in path.parts
    }


def check(result, tool, *words):
    code, err = result
    *notes, line = err.splitlines() or ['']
    assert code == 2, err
    assert line.startswith(f'{tool}.py: error: '), err
    said = tuple(f'{tool}.py: {word}' for word in ('--resume skips ', 'warning: '))
    assert all(note.startswith(said) for note in notes), err
    for word in words:
        assert word in line, line


def command(tool, config='mine.py', checkpoint='{world}/whole.pth'):
    more = dict(test=[checkpoint], get_flops=['--shape', '32'])
    return [config, *more.get(tool, [])]


# -------------------------------------------------------------------- config files
UNREADABLE = {
    'syntax': ('model = dict(', 'no valid Python', 'line'),
    'indentation': ('  model = 1', 'no valid Python'),
    'division': ('x = 1 / 0', 'ZeroDivisionError: division by zero'),
    'name': ('x = undefined', "NameError: name 'undefined' is not defined"),
    'no base': ("_base_ = './gone.py'", 'inherits what is missing', 'gone.py'),
    'no scope': ("_base_ = 'mmdett::a/b.py'", 'mmdett'),
    'not in scope': ("_base_ = 'mmdet::retinanet/gone.py'", 'gone.py'),
    'cycle': ("_base_ = './mine.py'", 'inherits itself'),
    'no variable': ("_base_ = '{world}/cls.py'\nx = {{_base_.gone}}", 'gone'),
    'import': ('import gone_module', "No module named 'gone_module'"),
    'twice': ("_base_ = ['{world}/cls.py', '{world}/det.py']", 'Duplicate key'),
    'empty': ('', 'no'),
    'dict expected': ("_base_ = '{world}/cls.py'\nmodel = 3\n", 'must be a dict'),
    'custom import': (
        "_base_ = '{world}/cls.py'\ncustom_imports = dict(imports=['gone_module'])",
        'gone_module',
    ),
}


@pytest.mark.modern_full
@pytest.mark.parametrize('tool', ['train', 'test', 'get_flops'])
@pytest.mark.parametrize('name', UNREADABLE)
def test_config_that_can_not_be_read(use, world, tool, name):
    if name == 'cycle' and tool != 'train':
        pytest.skip('it takes seconds, and all tools read alike')
    text, *words = UNREADABLE[name]
    Path('mine.py').write_text(text.replace('{world}', str(world)))
    check(use(tool, *command(tool)), tool, 'mine.py', *words)


PATHS = {
    'missing': ('gone.py', "'gone.py': there is no such file"),
    'folder': ('folder', "'folder': there is no such file"),
    'text': ('mine.txt', 'mine.txt'),
    'json': ('mine.json', 'mine.json'),
    'binary': ('binary.py', 'binary.py'),
}


@pytest.mark.parametrize('tool', ['train', 'test', 'get_flops'])
@pytest.mark.parametrize('name', PATHS)
def test_config_path(use, tool, name):
    Path('folder').mkdir()
    Path('mine.txt').write_text('model = 1')
    Path('mine.json').write_text('{')
    Path('binary.py').write_bytes(b'\x80\0\xff')
    path, *words = PATHS[name]
    check(use(tool, *command(tool, path)), tool, *words)


# ------------------------------------------------------ names in configs and options
MISSPELLED = {
    'pretraned': ("'x.pth'", 'pretrained'),
    'train_dataloadr': ('dict(batch_size=2)', 'train_dataloader'),
    'optim_wraper': ('dict()', 'optim_wrapper'),
    'load_form': ("'x.pth'", 'load_from'),
    'defaults_hooks': ('dict()', 'default_hooks'),
    'test_evaluater': ('dict()', 'test_evaluator'),
    'randomnes': ('dict(seed=1)', 'randomness'),
}


@pytest.mark.parametrize('tool', ['train', 'test'])
@pytest.mark.parametrize('key', MISSPELLED)
def test_misspelled_key(begin, world, tool, key):
    """It may be a variable of the user's own."""
    value, right = MISSPELLED[key]
    Path('mine.py').write_text(f"_base_ = '{world}/cls.py'\n{key} = {value}\n")
    (line,) = begin(tool, *command(tool)).splitlines()
    assert 'warning' in line and f'{key!r}' in line and f'mean {right!r}' in line


def test_misspelled_key_in_place_of_the_right_one(use, world):
    text = f"_base_ = '{world}/cls.py'\noptim_wrapper = None\noptim_wraper = dict()\n"
    Path('mine.py').write_text(text)
    check(use('train', 'mine.py'), 'train', "no optim_wrapper, but 'optim_wraper'")


@pytest.mark.parametrize('tool', ['train', 'test', 'get_flops'])
@pytest.mark.parametrize('key', MISSPELLED)
def test_misspelled_option(use, tool, key):
    args = command(tool, '{world}/cls.py')
    words = '--cfg-options', key, f'did you mean {MISSPELLED[key][1]!r}?'
    check(use(tool, *args, '--cfg-options', f'{key}=1'), tool, *words)


@pytest.mark.parametrize('tool', ['train', 'test', 'get_flops'])
@pytest.mark.parametrize(
    'option, words',
    [
        ('width', ["'width' is not KEY=VALUE"]),
        ('pipeline.9.type=X', ['--cfg-options', '9']),
        ('pretrained.x.y=1', ['--cfg-options']),
    ],
)
def test_option(use, tool, option, words):
    args = command(tool, '{world}/cls.py')
    check(use(tool, *args, '--cfg-options', option), tool, *words)


PARTS = {
    'train': ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper', 'val_cfg'),
    'test': ('model', 'test_dataloader', 'test_cfg', 'test_evaluator'),
    'get_flops': ('model',),
}


@pytest.mark.parametrize(
    'tool, key', [(tool, key) for tool, keys in PARTS.items() for key in keys]
)
def test_missing_part(use, world, tool, key):
    Path('mine.py').write_text(f"_base_ = '{world}/cls.py'\n{key} = None\n")
    check(use(tool, *command(tool)), tool, 'mine.py', key)


# options that a part of the run does not take: tools, option, words of the line
ARGUMENTS = [
    ('train test get_flops', 'model.backbone.arhc=tiny', "did you mean 'arch'?"),
    ('train test get_flops', 'model.backbone.arch=tini', 'tini', 'tiny'),
    ('train test get_flops', 'model.backbone.type=mmlinattn.SOFTPlus', 'SOFTPlus'),
    ('train test get_flops', 'model.backbone.type=SOFTPlusPlus', 'SOFTPlusPlus'),
    ('train test get_flops', 'model.backbone.out_indices=[9]', 'out_indices'),
    ('train test get_flops', 'model.backbone.sampler=cnv', 'cnv'),
    ('train test get_flops', 'model.neck.type=GAP', 'GAP is not in'),
    ('train test get_flops', 'model.head.num_clases=3', "did you mean 'num_classes'?"),
    ('train test get_flops', 'model.type=Classifier', 'model', 'Classifier'),
    ('train test', 'data_preprocessor.men=1', 'men'),
    ('train', 'train_dataloader.batchsize=2', 'train_dataloader', 'batchsize'),
    ('train', 'train_dataloader.sampler.type=Sampler', 'train_dataloader', 'Sampler'),
    ('train', 'train_dataloader.batch_size=0', 'train_dataloader', 'batch_size'),
    ('train', 'train_dataloader.num_workers=-1', 'num_workers'),
    ('train', 'train_dataloader.dataset.type=ImageNett', 'ImageNett'),
    ('train', 'train_dataloader.dataset.splitt=train', 'splitt'),
    ('train', 'train_dataloader.dataset.pipeline.0.type=Load', 'Load'),
    ('train', 'train_dataloader.dataset.pipeline.0.colr=1', 'colr'),
    ('test', 'test_dataloader.batchsize=2', 'test_dataloader', 'batchsize'),
    ('test', 'test_dataloader.dataset.type=ImageNett', 'ImageNett'),
    ('test', 'test_dataloader.dataset.pipeline.1.type=Pack', 'Pack'),
    ('train', 'val_evaluator.type=Acuracy', 'val_evaluator', 'Acuracy'),
    ('train', 'val_evaluator.topp=1', 'val_evaluator', 'topp'),
    ('test', 'test_evaluator.type=Acuracy', 'test_evaluator', 'Acuracy'),
    ('test', 'test_evaluator.topp=1', 'test_evaluator', "did you mean 'topk'?"),
    ('test', 'test_cfg.fp=1', 'test_cfg', 'fp16'),
    ('train', 'val_cfg.fp=1', 'val_cfg', 'fp16'),
    ('train', 'train_cfg.max_epoch=1', "did you mean 'max_epochs'?"),
    ('train', 'train_cfg.type=Loop', 'train_cfg', '`type` or `by_epoch`'),
    ('train', 'train_cfg=9', 'train_cfg', 'should be a Loop object or dict'),
    ('train', 'optim_wrapper.type=Wrapper', 'optim_wrapper', 'Wrapper'),
    ('train', 'optim_wrapper.optimizer.type=SDG', "did you mean 'SGD'?"),
    ('train', 'optim_wrapper.paramwise_cfg.norm_decay_mlt=0', "'norm_decay_mult'?"),
    ('train', 'default_hooks.checkpoint.filename_tmpl={step}.pth', 'filename_tmpl'),
    ('train', 'optim_wrapper.optimizer.lrr=1', 'optim_wrapper', 'lrr'),
    ('train', 'optim_wrapper.optimizer.lr=-1', 'optim_wrapper', 'learning rate'),
    ('train', 'optim_wrapper.constructor=Other', 'optim_wrapper', 'Other'),
    ('train', 'param_scheduler.0.type=Linear', 'param_scheduler.0', 'Linear'),
    ('train', 'param_scheduler.0.start=1', 'param_scheduler.0', 'start'),
    (
        'train',
        'param_scheduler.0.start_factor=5',
        'param_scheduler.0',
        'between 0 and 1',
    ),
    ('train test', 'default_hooks.logger.type=Loger', 'default_hooks.logger', 'Loger'),
    ('train test', 'default_hooks.logger.intervl=1', "did you mean 'interval'?"),
    ('train', 'default_hooks.checkpoint.save_bst=1', "mean 'save_best'?"),
    ('train test', 'randomness.sed=1', 'randomness', 'seed'),
    ('train test', 'visualizer.type=Visual', 'visualizer', 'Visual'),
    ('train test', 'log_processor.window=1', 'log_processor', 'window'),
    ('train', 'load_from=gone.pth', "load_from='gone.pth'", 'no such file'),
    ('train', 'pretrained=gone.pth', "pretrained='gone.pth'", 'no such file'),
    ('train', 'pretrained=5', 'pretrained must be the path'),
    ('train', 'pretrained=x://y', 'pretrained', 'x://y'),
    ('train', 'default_hooks.pretrained=None', 'pretrained=x.pth'),
]


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'tool, option, words',
    [
        (tool, option, words)
        for tools, option, *words in ARGUMENTS
        for tool in tools.split()
    ],
)
def test_argument(use, tool, option, words):
    options = [option]
    if option == 'default_hooks.pretrained=None':
        options.append('pretrained=x.pth')
        words = ["pretrained='x.pth' would have no effect"]
    args = command(tool, '{world}/cls.py')
    check(use(tool, *args, '--cfg-options', *options), tool, *words)


# lines of a config, and words of the error
LINES = [
    ("custom_hooks = [dict(type='EMA')]", 'custom_hooks.0: EMA is not in'),
    ('train_cfg = dict(_delete_=True)', 'train_cfg', 'max_iters'),
    ('train_dataloader = dict(_delete_=True, batch_size=1)', "has no 'dataset'"),
    ("param_scheduler = [dict(type='PolyLR', pow=1)]", 'param_scheduler.0', 'pow'),
    ('data_preprocessor = dict(_delete_=True, size=3)', 'model', 'size'),
    ('model = dict(neck=dict(_delete_=True))', 'model', 'type'),
    (
        'default_hooks = dict('
        "checkpoint=dict(filename_tmpl='a.pth', max_keep_ckpts=1))",
        "filename_tmpl='a.pth'",
        'add {}',
    ),
    (
        "custom_hooks = [dict(type='mmlinattn.OversmoothingHook')]\n"
        "model = dict(backbone=dict(_delete_=True, type='ResNet', depth=18))",
        'custom_hooks.0: ImageClassifier has no attention of mmlinattn',
    ),
    (
        'optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=True),'
        "constructor='mmlinattn.LayerDecayOptimWrapperConstructor')",
        'layer_decay_rate=True',
    ),
    *(
        (f'model = dict(head=dict(init_cfg={init_cfg}))', 'model.head.init_cfg', words)
        for init_cfg, words in (
            ('5', 'got 5'),
            ("dict(type='Xavir')", 'Xavir'),
            ("dict(type='Normal', st=1)", "did you mean 'std'?"),
            ("dict(type='Pretrained', checkpoint='gone.pth')", 'no such file'),
            ("dict(type='Pretrained', checkpoint='{world}/code.pth')", '--trust'),
        )
    ),
]
# options that may be meant, and words of the warning
DOUBTS = [
    ('default_hooks.checkpoint.interval=0', 'checkpoint.interval=0'),
    ('default_hooks.checkpoint.max_keep_ckpts=0', 'checkpoint.max_keep_ckpts=0'),
    ('default_hooks.checkpoint.filename_tmpl=a.pth', 'have one name'),
    ('default_hooks.checkpoint.save_best=accuracy/top9', "save_best='accuracy/top9'"),
    ('default_hooks.checkpoint.save_best=mAP', "save_best='mAP'"),
    ('train_cfg.max_epochs=0', 'it trains for 0 iterations'),
    ('optim_wrapper.paramwise_cfg.mine=1', "nothing reads 'mine'"),
    ('param_scheduler.0.end=500', 'the warm-up takes 500 iterations'),
    ('something=1', '--cfg-options something'),
]


@pytest.mark.parametrize('line, words', [(line, words) for line, *words in LINES])
def test_line(use, world, line, words):
    line = line.replace('{world}', str(world))
    Path('mine.py').write_text(f"_base_ = '{world}/cls.py'\n{line}\n")
    check(use('train', 'mine.py'), 'train', *words)


@pytest.mark.parametrize('option, words', DOUBTS)
def test_doubt(begin, option, words):
    (line,) = begin('train', '{world}/cls.py', '--cfg-options', option).splitlines()
    assert line.startswith('train.py: warning: ') and words in line


FINE_OPTIONS = [
    'default_hooks.checkpoint.save_best=auto',
    'default_hooks.checkpoint.save_best=accuracy/top1',
    'default_hooks.checkpoint.interval=-1',
    'optim_wrapper.paramwise_cfg.bias_lr_mult=2',
    'randomness.seed=3',
    'my_train_dataloader=1',
]


@pytest.mark.parametrize('option', FINE_OPTIONS)
def test_option_that_is_fine(begin, option):
    err = begin('train', '{world}/cls.py', '--cfg-options', option)
    assert ('warning' in err) == (option == 'my_train_dataloader=1')


@pytest.mark.parametrize('tool', ['train', 'test'])
def test_no_preflight(begin, monkeypatch, tool):
    args = command(tool, '{world}/cls.py')
    wrong = ['--cfg-options', 'default_hooks.logger.intervl=1']
    assert begin(tool, *args, *wrong, '--no-preflight') == ''
    monkeypatch.setenv('RANK', '1')  # the first process looks for all
    assert begin(tool, *args, *wrong) == ''


def test_check_that_fails_itself(begin, monkeypatch):
    def fail(*args):
        raise RuntimeError('by mistake')

    monkeypatch.setattr(preflight, 'problems', fail)
    assert 'labels were not checked: by mistake' in begin('train', '{world}/cls.py')
    monkeypatch.setattr(preflight, 'DryRunner', fail)
    assert 'the check ended early: by mistake' in begin('train', '{world}/cls.py')


@pytest.mark.parametrize('folder', ['mine.txt', 'mine.txt/x', '/proc/mine', '/proc'])
@pytest.mark.parametrize('tool', ['train', 'test'])
def test_work_dir(use, tool, folder):
    Path('mine.txt').touch()
    args = *command(tool, '{world}/cls.py'), '--work-dir', folder
    check(use(tool, *args), tool, f'work_dir={folder!r}')


# ---------------------------------------------------------------------- checkpoints
UNREADABLE_FILES = {
    'gone': 'there is no such file',
    'empty': 'empty',
    'garbage': 'orch',
    'truncated': '',
    'page': 'orch',
    'code': 'io.open',
    'list': 'must hold a dict',
    'none': 'no weights',
}
WRONG_MODELS = {
    'bare': 'no weights',
    'nan': 'NaN or infinite values',
    'other': 'missing',
    'official': '',
    'head': 'missing',
    'wider': 'of other shapes',
    'deeper': 'no place for',
    'shallow': 'missing',
}
USES = {
    'test': ['{world}/cls.py', '{path}'],
    'resume': ['{world}/cls.py', '--resume', '{path}'],
    'load_from': ['{world}/cls.py', '--cfg-options', 'load_from={path}'],
    'pretrained': ['{world}/cls.py', '--cfg-options', 'pretrained={path}'],
}
# these are a start for a training
FINE = {
    ('load_from', 'head'),
    ('load_from', 'deeper'),
    ('load_from', 'shallow'),
    ('pretrained', 'deeper'),
    ('pretrained', 'code'),
}


@pytest.mark.modern_full
@pytest.mark.parametrize('how', USES)
@pytest.mark.parametrize('name', [*UNREADABLE_FILES, *WRONG_MODELS, 'weights_only'])
def test_checkpoint(use, how, name):
    if (how, name) in FINE or (name == 'weights_only' and how != 'resume'):
        pytest.skip('it is fine')
    tool = 'test' if how == 'test' else 'train'
    words = {**UNREADABLE_FILES, **WRONG_MODELS}.get(name, 'no state of a training')
    args = [arg.replace('{path}', f'{{world}}/{name}.pth') for arg in USES[how]]
    words = words if how in ('test', 'resume', 'load_from') else ''
    check(use(tool, *args), tool, f'{name}.pth', words)


@pytest.mark.parametrize('how', USES)
def test_code_in_a_checkpoint(use, how):
    tool = 'test' if how == 'test' else 'train'
    args = [arg.replace('{path}', '{world}/code.pth') for arg in USES[how]]
    check(use(tool, *args), tool, 'io.open', '--trust')
    assert not Path('executed').exists()


@pytest.mark.modern_full
@pytest.mark.parametrize('name', ['nan', 'head', 'wider', 'deeper', 'shallow'])
@pytest.mark.parametrize('how', ['test', 'resume', 'load_from'])
def test_mismatch_that_is_asked_for(begin, how, name):
    tool = 'test' if how == 'test' else 'train'
    args = [arg.replace('{path}', f'{{world}}/{name}.pth') for arg in USES[how]]
    err = begin(tool, *args, '--allow-mismatch')
    assert f'{name}.pth' in err and err.count('\n') == 1
    words = {**WRONG_MODELS, 'wider': 'of other shapes'}[name]
    assert words in err


@pytest.mark.parametrize('how', USES)
def test_trust_that_is_given(begin, monkeypatch, how):
    monkeypatch.setenv('MMLINATTN_TRUST', '')  # is set back after the test
    tool = 'test' if how == 'test' else 'train'
    args = [arg.replace('{path}', '{world}/code.pth') for arg in USES[how]]
    assert begin(tool, *args, '--trust') == ''
    assert Path('executed').exists()


@pytest.mark.parametrize('name', ['head', 'deeper', 'shallow'])
def test_start_with_other_parts(begin, name):
    args = [arg.replace('{path}', f'{{world}}/{name}.pth') for arg in USES['load_from']]
    err = begin('train', *args)
    assert 'entries of the model are loaded' in err and WRONG_MODELS[name] in err


@pytest.mark.parametrize('tool', ['train', 'test'])
@pytest.mark.parametrize('kind', CONFIGS)
def test_good_input(begin, tool, kind):
    """So that what fails above fails for its own reason."""
    args = command(tool, f'{{world}}/{kind}.py')
    more = ['--allow-mismatch'] if tool == 'test' and kind != 'cls' else []
    err = begin(tool, *args, *more)
    assert bool(err) == bool(more)


RESUMES = {
    'broken': (dict(epoch_1='truncated'), 'epoch_1.pth: the file is truncated'),
    'empty': (dict(epoch_1='empty', epoch_2='empty'), 'epoch_1.pth: the file is empty'),
    'garbage': (dict(epoch_3='garbage'), 'epoch_3.pth: it is no checkpoint'),
    'note': ({}, 'there is no such file'),
    'other': (dict(epoch_1='other'), 'epoch_1.pth'),
    'code': (dict(epoch_1='code'), 'io.open'),
}


@pytest.mark.parametrize('name', RESUMES)
def test_resume_from_what_is_there(use, world, name):
    files, words = RESUMES[name]
    work = Path('work')
    work.mkdir()
    for file, source in files.items():
        shutil.copy(world / f'{source}.pth', work / f'{file}.pth')
    if not files:
        (work / 'last_checkpoint').write_text('/gone/epoch_9.pth')
    code, err = use('train', '{world}/cls.py', '--resume', '--work-dir', 'work')
    *notes, line = err.splitlines()
    assert code == 2 and line.startswith('train.py: error: ') and words in line
    assert all(note.startswith('train.py: --resume ') for note in notes)


# ----------------------------------------------------------------------------- data
def damage(path, content=None):
    """Replaces a copied file: by nothing, by bytes, or by a changed JSON object."""
    if content is None:
        path.unlink()
    elif callable(content):
        data = json.loads(path.read_text())
        content(data)
        path.write_text(json.dumps(data))
    else:
        path.write_bytes(content)


def no_images(data):
    data['images'] = []


def no_categories(data):
    data['categories'] = []


def other_categories(data):
    for category in data['categories']:
        category['name'] = f'my {category["name"]}'


COCO_FILE = 'annotations/instances_{}2017.json'
FIRST = {
    'cls': {split: f'{split}/**/*.JPEG' for split in ('train', 'val')},
    'det': {split: f'{split}2017/*.jpg' for split in ('train', 'val')},
    'seg': dict(train='images/training/*.jpg', val='images/validation/*.jpg'),
}
# kind, file of a split, what becomes of it, words of the line
DATA = {
    'no annotations': ('det', COCO_FILE, None, 'no such file'),
    'empty JSON': ('det', COCO_FILE, b'', COCO_FILE),
    'bad JSON': ('det', COCO_FILE, b'{"images": [', COCO_FILE),
    'JSON list': ('det', COCO_FILE, b'[]', COCO_FILE),
    'JSON of something else': ('det', COCO_FILE, b'{"a": 1}', 'categories'),
    'no images': ('det', COCO_FILE, no_images, 'no samples'),
    'no categories': ('det', COCO_FILE, no_categories, 'none of its 80 classes'),
    'other categories': ('det', COCO_FILE, other_categories, '(my '),
    'image gone': ('det', FIRST['det'], None, 'first sample'),
    'image empty': ('det', FIRST['det'], b'', 'first sample'),
    'image corrupted': ('det', FIRST['det'], b'\xff\xd8\xff\xe0' * 9, 'first sample'),
    'classifier image empty': ('cls', FIRST['cls'], b'', 'first sample'),
    'classifier image corrupted': ('cls', FIRST['cls'], b'GIF89a', 'first sample'),
    'segmentor image gone': ('seg', FIRST['seg'], None, ''),
    'segmentor image corrupted': ('seg', FIRST['seg'], b'JPEG', 'first sample'),
}
LAYOUTS = dict(cls='imagenet', det='coco', seg='ade20k')


@pytest.fixture
def copied(world, tmp_path_factory):
    """A copy of the data of a kind, and the option that names it."""

    def copy(kind):
        folder = tmp_path_factory.mktemp('copy') / LAYOUTS[kind]
        shutil.copytree(world / LAYOUTS[kind], folder)
        return folder

    return copy


@pytest.mark.modern_full
@pytest.mark.parametrize('tool', ['train', 'test'])
@pytest.mark.parametrize('name', DATA)
def test_data(use, copied, tool, name):
    kind, where, content, words = DATA[name]
    split = 'train' if tool == 'train' else 'val'
    folder = copied(kind)
    pattern = where.format(split) if isinstance(where, str) else where[split]
    for path in sorted(folder.glob(pattern)):
        damage(path, content)
    section = f'{tool}_dataloader'
    options = [f'{section}.dataset.data_root={folder}']
    if tool == 'train':
        options.append('val_dataloader.dataset.data_root={world}/' + LAYOUTS[kind])
    args = command(tool, f'{{world}}/{kind}.py')
    result = use(tool, *args, '--cfg-options', *options)
    check(result, tool, section, words.format(split))
    if name == 'other categories':  # left out together with their images
        options.append(f'{section}.dataset.filter_cfg.filter_empty_gt=True')
        result = use(tool, *args, '--cfg-options', *options)
        check(result, tool, section, '(person, bicycle,', words)


@pytest.mark.parametrize('tool', ['train', 'test'])
@pytest.mark.parametrize('kind', LAYOUTS)
def test_no_data(use, tool, kind):
    option = f'{tool}_dataloader.dataset.data_root=nowhere'
    args = command(tool, f'{{world}}/{kind}.py')
    words = f'{tool}_dataloader', "'nowhere/", 'put or link the data there'
    check(use(tool, *args, '--cfg-options', option), tool, *words)


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'kind, option',
    [
        ('cls', 'model.head.num_classes=3'),
        ('det', 'model.bbox_head.num_classes=3'),
        ('seg', 'model.decode_head.num_classes=2'),
    ],
)
def test_labels_out_of_range(use, begin, kind, option):
    words = f'num_classes={option[-1]}, for labels 0 to'
    args = f'{{world}}/{kind}.py', '--cfg-options', option
    check(use('train', *args), 'train', 'train_dataloader.dataset', words)
    # a test counts them as errors
    args = args[0], '{world}/whole.pth', *args[1:], '--allow-mismatch'
    assert words in begin('test', *args)


def test_label_map_out_of_range(use, copied):
    folder = copied('seg')
    import numpy as np
    from PIL import Image

    for path in folder.glob('annotations/training/*.png'):
        Image.fromarray(np.full((48, 48), 200, np.uint8)).save(path)
    option = f'train_dataloader.dataset.data_root={folder}'
    result = use('train', '{world}/seg.py', '--cfg-options', option)
    check(result, 'train', 'its label map has 199', 'num_classes=150')


# ---------------------------------------------- devices, launchers and environment
@pytest.mark.parametrize('tool', ['train', 'test'])
@pytest.mark.parametrize(
    'args, words',
    [
        (['--launcher', 'torchrun'], ['--launcher', 'slurm']),
        (['--launcher', 'pytorch'], ['RANK', 'dist_train.sh']),
        (['--launcher', 'slurm'], ['needs a GPU']),
        (['--launcher', 'mpi'], ['needs a GPU']),
        (['--local-rank', 'x'], ["'x'"]),
        (['--gpus', '2'], ['unrecognized arguments']),
        (['--work', 'x'], ['unrecognized arguments']),
        (['--work-dir'], ['--work-dir']),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason='launchers work with GPUs')
def test_launcher(use, tool, args, words):
    check(use(tool, *command(tool, '{world}/cls.py'), *args), tool, *words)


@pytest.mark.parametrize('how', USES)
def test_trust_that_is_neither(use, monkeypatch, how):
    monkeypatch.setenv('MMLINATTN_TRUST', 'yes')
    tool = 'test' if how == 'test' else 'train'
    args = [arg.replace('{path}', '{world}/whole.pth') for arg in USES[how]]
    check(use(tool, *args), tool, 'MMLINATTN_TRUST must be 0 or 1', "'yes'")


# ---------------------------------------------------------------- other arguments
# tool, arguments, words of the line; {foreign} is a folder of someone else's
OTHERS = [
    ('train', [], 'config'),
    ('train', ['{world}/cls.py', '--amp=1'], '--amp'),
    ('train', ['{world}/cls.py', '--auto-scale-lr'], 'base_batch_size'),
    ('train', ['{world}/cls.py', 'another'], 'another'),
    (
        'train',
        ['{world}/cls.py', '--resume', '{world}/beyond.pth'],
        'at epoch 1000000000000, and the training ends at train_cfg.max_epochs=1',
    ),
    ('test', ['{world}/cls.py', '{world}/ints.pth'], 'keys of a state dict are text'),
    ('test', [], 'config, checkpoint'),
    ('test', ['{world}/cls.py'], 'checkpoint'),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--out', 'x.json'], '.pkl'),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--out', 'mine.txt'], 'exists'),
    (
        'test',
        ['{world}/cls.py', '{world}/whole.pth', '--show-dir', 'foreign'],
        'foreign is not empty: give --overwrite',
    ),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--tta'], 'tta_model'),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--show'], 'visualization'),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--interval', 'x'], "'x'"),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--interval', '0'], "'0'"),
    (
        'test',
        [
            *('{world}/cls.py', '{world}/whole.pth', '--tta', '--cfg-options'),
            *('tta_model.type=AverageClsScoreTTA', 'tta_pipeline=[]'),
        ],
        'lacks tta_pipeline',
    ),
    ('test', ['{world}/cls.py', '{world}/whole.pth', '--wait-time', 'x'], "'x'"),
    ('get_flops', [], 'CONFIG'),
    ('get_flops', ['{world}/cls.py', '--shape', '0'], "'0'"),
    ('get_flops', ['{world}/cls.py', '--shape', '1', '2', '3'], 'one or two'),
    ('get_flops', ['{world}/cls.py', '--shape', '8'], '8'),
    ('get_flops', ['{world}/cls.py'], 'give --shape'),
    ('get_flops', ['{world}/cls.py', '--out', 'foreign'], "'foreign' is a folder"),
    ('get_flops', ['{world}/cls.py', '--out', 'mine.txt/x'], 'mine.txt'),
    ('get_flops', ['{world}/cls.py', '--out', 'mine.txt'], 'mine.txt exists'),
    ('convert_official', [], 'FAMILY'),
    ('convert_official', ['sft', '{world}/whole.pth', 'x.pth'], "'sft'"),
    ('convert_official', ['soft', 'gone.pth', 'x.pth'], "'gone.pth'"),
    ('convert_official', ['soft', '{world}/empty.pth', 'x.pth'], 'is empty'),
    ('convert_official', ['soft', '{world}/garbage.pth', 'x.pth'], 'garbage.pth'),
    ('convert_official', ['soft', '{world}/truncated.pth', 'x.pth'], 'is cut off'),
    ('convert_official', ['soft', '{world}/page.pth', 'x.pth'], 'page.pth'),
    ('convert_official', ['soft', '{world}/code.pth', 'x.pth'], '--trust'),
    ('convert_official', ['soft', '{world}/list.pth', 'x.pth'], 'must hold a dict'),
    ('convert_official', ['soft', '{world}/none.pth', 'x.pth'], 'no state dict'),
    ('convert_official', ['soft', '{world}/whole.pth', 'x.pth'], 'whole.pth'),
    ('convert_official', ['soft', '{world}/official.pth', 'x.pth'], 'official.pth'),
    ('convert_official', ['auto', '{world}/other.pth', 'x.pth'], 'not recognized'),
    ('convert_official', ['soft', '{world}/whole.pth', 'foreign'], 'name a file'),
    ('convert_official', ['soft', '{world}/whole.pth', 'mine.txt'], '--overwrite'),
    ('convert_official', ['soft', 'x://y', 'x.pth'], "'x://y'"),
    ('convert_official', ['mmlinattn', '{world}/whole.pth', 'x.pth'], '--publish'),
    (
        'convert_official',
        ['soft', '{world}/whole.pth', 'x.pth', '--attention', 'elfatt'],
        'swin or cswin',
    ),
    ('convert_official', ['swin', 'a', 'b', '--arch', 't'], '--attention elfatt'),
    ('convert_official', ['swin', 'a', 'b', '--reverse', '--ema'], '--reverse'),
    ('make_shapes', [], '--layout'),
    ('make_shapes', ['--layout', 'voc', '--out', 'x'], "'voc'"),
    ('make_shapes', ['--layout', 'coco', '--out', 'mine.txt'], 'mine.txt'),
    ('make_shapes', ['--layout', 'coco', '--out', 'foreign'], 'foreign'),
    (
        'make_shapes',
        ['--layout', 'coco', '--out', 'x', '--num-train', '0'],
        'num-train',
    ),
    ('make_shapes', ['--layout', 'coco', '--out', 'x', '--num-val', 'x'], "'x'"),
    ('make_shapes', ['--layout', 'coco', '--out', 'x', '--seed', '-1'], 'seed'),
    ('make_shapes', ['--layout', 'coco', '--out', 'x', '--size', '8', '8'], '32 to'),
    ('make_shapes', ['--layout', 'coco', '--out', 'x', '--size', '8'], '--size'),
    ('quickstart', ['--out', 'mine.txt'], 'mine.txt'),
    ('quickstart', ['--out', 'foreign'], 'foreign'),
    ('quickstart', ['--num-train', '0'], '--num-train'),
    ('quickstart', ['--epochs', '0'], '--epochs'),
    ('quickstart', ['--size', '9'], '--size'),
    ('quickstart', ['--sizes', '9'], '--sizes'),
    ('quickstart', ['--cfg-options', 'model.backbone.arch'], 'KEY=VALUE'),
]


@pytest.mark.parametrize('tool, args, words', OTHERS)
def test_other_arguments(use, tool, args, words):
    Path('foreign').mkdir()
    Path('foreign', 'mine').touch()
    Path('mine.txt').write_text('mine')
    check(use(tool, *args), tool, words)


# ------------------------------------------------------------------ as a user does it
@pytest.mark.parametrize(
    'args, words',
    [
        (['train.py', '{world}/cls.py', '--cfg-options', 'pretraned=x'], 'pretrained'),
        (['test.py', '{world}/cls.py', '{world}/nan.pth'], 'NaN'),
        (['train.py', 'gone.py', '--debug'], 'no such file'),
    ],
)
def test_in_a_process_of_its_own(world, tmp_path, args, words):
    args = [arg.replace('{world}', str(world)) for arg in args]
    paths = [str(ROOT), os.environ.get('PYTHONPATH', '')]
    done = subprocess.run(
        [sys.executable, str(ROOT / 'tools' / args[0]), *args[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, paths))),
    )
    *before, line = done.stderr.splitlines()
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert line.startswith(f'{args[0]}: error: ') and words in line
    assert any('Traceback' in text for text in before) == ('--debug' in args)
