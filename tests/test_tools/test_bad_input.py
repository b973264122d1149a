"""Training and testing with bad input: one line on stderr that names the fault and the
remedy, exit code 2, nothing written, and no work begun.

Each check has a case that triggers it. A case runs the tool's `main` in this process,
in an empty folder, with a runner that must not be made. `{world}` stands for a folder
with data, checkpoints and two right configs.
"""

import gc
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from small_configs import CLASSIFIER, RUN
from torch import nn

from mmlinattn.engine.preflight import build_model
from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')

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
    whole = dict(state_dict=weights, optimizer=optimizer, meta=dict(epoch=1, iter=3))
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
    ).items():
        torch.save({**whole, **changes}, folder / f'{name}.pth')
    (folder / 'empty.pth').touch()
    torch.save(dict(state_dict=weights), folder / 'weights.pth')


@pytest.fixture(scope='module')
def world(tmp_path_factory, load_tool):
    """A folder with data, configs and checkpoints."""
    folder = tmp_path_factory.mktemp('world')
    make_shapes = load_tool('dataset_converters/make_shapes.py')
    for layout in ('imagenet', 'coco'):
        counts = '--num-train', '3', '--num-val', '2', '--size', '48', '48'
        make_shapes.main(['--layout', layout, '--out', str(folder / layout), *counts])
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
def use(world, tmp_path, monkeypatch, capsys, load_tool):
    """Uses a tool up to the beginning of work; returns its exit code and lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setenv('MMLINATTN_TRUST', '')
    for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.delenv(name, raising=False)
    # mm changes them when it reads configs
    monkeypatch.setattr(sys, 'path', list(sys.path))

    def begin(*args):
        raise Began

    monkeypatch.setattr(Runner, 'from_cfg', begin)

    def call(tool, *args):
        args = [str(arg).replace('{world}', str(world)) for arg in args]
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *args])
        before = set(tmp_path.rglob('*'))
        capsys.readouterr()
        code = 0
        try:
            load_tool(f'{tool}.py').main()
        except Began:
            pass
        except SystemExit as stop:
            code = stop.code
            assert {*tmp_path.rglob('*')} - before <= set(tmp_path.rglob('*pycache*'))
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
    ('model = dict(type="Classifier")', 'model: KeyError', 'Classifier is not in'),
    ('model = dict(head=dict(num_clases=3))', 'model: TypeError', "'num_clases'"),
    ('train_dataloader = dict(dataset=dict(type="ImageNett"))', 'ImageNett is not'),
    ('train_dataloader = dict(dataset=dict(data_root="x"))', 'train_dataloader', 'x/'),
    ('model = dict(head=dict(num_classes=3))', 'num_classes=3, labels 0 to 2'),
]


@pytest.mark.parametrize('lines, words', [(lines, words) for lines, *words in REFUSED])
def test_part_that_can_not_be_built(fails, inherit, lines, words):
    inherit(lines)
    fails('train', 'mine.py', words=['mine.py', *words])


# Those that may be meant, and words of the warning.
DOUBTED = [
    ('', '--cfg-options something=1', 'neither the config nor'),
    ('model = dict(head=dict(num_classes=1001))', '', 'the head has num_classes=1001'),
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
        ('--allow-mismatch ', 'head', 'does not fit this model'),
    ],
)
def test_mismatch_that_is_meant(warns, how, name, words):
    tool = 'train' if '=' in how or RESUME in how else 'test'
    warns(tool, CLS, *f'{how}{{world}}/{name}.pth'.split(), words=words)


def test_weights_are_read_before_data_are_looked_for(fails):
    options = 'train_dataloader.dataset.data_root=gone', 'pretrained={world}/empty.pth'
    fails('train', CLS, '--cfg-options', *options, words='empty.pth')


@pytest.mark.parametrize('how', ['', LOAD, RESUME, PRETRAINED])
def test_trust(use, fails, monkeypatch, how):
    tool = 'train' if how else 'test'
    args = [tool, CLS, *f'{how}{{world}}/code.pth'.split()]
    assert use(*args, '--trust') == (0, [])
    assert Path('executed').exists()
    monkeypatch.setenv('MMLINATTN_TRUST', 'yes')
    fails(*args, words=('MMLINATTN_TRUST must be 0 or 1', "'yes'"))


# -------------------------------------------------------------------- other arguments
@pytest.mark.parametrize(
    'tool, options, words',
    [
        ('train', '--cfg-options pretraned=x', "did you mean 'pretrained'?"),
        ('train', '--cfg-options width', "'width' is not KEY=VALUE"),
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


@pytest.mark.parametrize(
    'size, batch, right', [(1, 1, False), (2, 1, True), (1, 2, True)]
)
def test_batch_norm_of_one_value(load_tool, size, batch, right):
    """As torch refuses it in the first step."""
    pool = nn.AdaptiveAvgPool2d(size), nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
    model = nn.Sequential(nn.Sequential(*pool))
    cfg = Config(dict(train_dataloader=dict(batch_size=batch), launcher='none'))
    for check in (
        lambda: load_tool('train.py').check_batch(cfg, model),
        lambda: model(torch.rand(batch, 3, 4, 4)),
    ):
        with nullcontext() if right else pytest.raises(ValueError, match='more'):
            check()
