"""Every error of docs/faq.md: what triggers it prints what the page quotes, and what
the page advises works."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS, DefaultScope
from torch import nn

import mmlinattn.registry
import mmlinattn.weights
from mmlinattn.engine.preflight_data import build_loader
from mmlinattn.models import ProjectedAttention
from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs' / 'faq.md').read_text('utf-8')
SECTIONS = dict(re.findall(r'^### (.+?)\n(.*?)(?=^##|\Z)', PAGE, re.M | re.S))
TINY = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1] * 4, num_heads=[1, 2, 3, 4]),
)
DETECTOR = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
CASES = {}


def reproduces(title):
    """Registers the case of a title of the page."""

    def register(case):
        CASES[title] = case
        return case

    return register


def message_of(call, *args, **kwargs):
    """The last line of a traceback, as Python prints it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args, **kwargs)
    error = caught.value
    return f'{type(error).__name__}: {error}'


def build(cfg, scope='mmdet'):
    with DefaultScope.overwrite_default_scope(scope):
        return MODELS.build(cfg)


def run(*command, **kwargs):
    """What a command prints on stderr; it must fail."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, **kwargs
    )
    assert done.returncode, done.stdout
    return done.stderr


@reproduces('A backbone is not in the registry')
def no_prefix(tmp_path):
    build(TINY)
    return message_of(build, dict(TINY, type='SOFTPlusPlus'))


@reproduces('A module of your own is not in the registry')
def not_imported(tmp_path, monkeypatch):
    cfg = dict(TINY, attention=dict(type='mmlinattn.MyAttention'))
    message = message_of(build, cfg)
    (tmp_path / 'my_attention.py').write_text(
        'from mmlinattn.models import EfficientAttention\n'
        'from mmlinattn.registry import MODELS\n\n\n'
        '@MODELS.register_module()\n'
        'class MyAttention(EfficientAttention):\n'
        '    """Mine."""\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    Config(dict(custom_imports=dict(imports=['my_attention'])))
    path = tmp_path / 'config.py'
    path.write_text("custom_imports = dict(imports=['my_attention'])\n")
    Config.fromfile(path)
    try:
        build(cfg)
    finally:
        mmlinattn.registry.MODELS.module_dict.pop('MyAttention')
    return message


@reproduces('The neck expects other channels')
def channels(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text(f'_base_ = {DETECTOR!r}\n')
    cfg = load_config(str(path)).model
    cfg.backbone = dict(TINY)
    x = torch.rand(1, 3, 64, 64)
    message = message_of(build(cfg).extract_feat, x)
    cfg.neck.update(in_channels=[8, 16, 24, 32])
    build(cfg).extract_feat(x)
    return message


@reproduces('The backbone has no such argument')
def no_delete(tmp_path):
    def changed(**keys):
        path = tmp_path / 'config.py'
        backbone = dict(keys, type='mmlinattn.SOFTPlusPlus', arch='tiny')
        path.write_text(f'_base_ = {DETECTOR!r}\nmodel = dict(backbone={backbone})\n')
        return load_config(str(path)).model.backbone

    build(changed(_delete_=True))
    return message_of(build, changed())


@reproduces('The version of mmcv is refused')
def mmcv_version(tmp_path):
    code = "import mmcv; mmcv.__version__ = '2.2.0'; import mmdet"
    return run(sys.executable, '-c', code).splitlines()[-1]


@reproduces('mmcv has no operators')
def mmcv_lite(tmp_path):
    import mmcv

    folder = tmp_path / 'mmcv'
    ignore = shutil.ignore_patterns('_ext*', '__pycache__')
    shutil.copytree(
        Path(mmcv.__file__).parent, folder, ignore=ignore, copy_function=os.symlink
    )
    message = run(sys.executable, '-c', 'import mmcv.ops', cwd=tmp_path)
    code = 'import mmcv; import mmlinattn.models; print(mmcv.__file__)'
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path) in done.stdout
    return message.splitlines()[-1]


@reproduces('Official weights in `load_from`')
def load_from(tmp_path):
    model = nn.Module()
    model.backbone = build(dict(type='mmlinattn.SwinTransformer', arch='tiny'))
    official = {
        'patch_embed.proj.weight': torch.zeros(96, 3, 4, 4),
        'layers.0.blocks.0.attn.relative_position_bias_table': torch.zeros(169, 3),
        'layers.0.blocks.0.attn.qkv.weight': torch.zeros(288, 96),
        'norm.weight': torch.zeros(768),
    }
    return message_of(model.load_state_dict, official)


@reproduces('A checkpoint of another size')
def other_size(tmp_path):
    path = tmp_path / 'tiny.pth'
    torch.save(dict(state_dict=build(TINY).state_dict()), path)
    wide = dict(TINY['arch'], embed_dims=[8, 16, 24, 64])
    start = dict(type='Pretrained', checkpoint=str(path))
    build(dict(TINY, init_cfg=start)).init_weights()
    other = build(dict(TINY, arch=wide, init_cfg=start))
    return message_of(other.init_weights).replace(str(path), 'tiny.pth')


def shapes(folder, name):
    """A data set of one box, of a class of this name."""
    content = dict(
        images=[dict(id=1, file_name='1.png', width=64, height=64)],
        annotations=[
            dict(
                id=1,
                image_id=1,
                category_id=1,
                bbox=[8, 8, 32, 32],
                area=1024,
                iscrowd=0,
            )
        ],
        categories=[dict(id=1, name=name)],
    )
    (folder / 'train.json').write_text(json.dumps(content))


@reproduces('A data set without any image')
def no_images(tmp_path):
    shapes(tmp_path, 'ship')
    cfg = dict(
        type='CocoDataset',
        data_root=str(tmp_path),
        ann_file='train.json',
        data_prefix=dict(img=''),
        filter_cfg=dict(filter_empty_gt=True),
        pipeline=[],
    )

    def data(**keys):
        with DefaultScope.overwrite_default_scope('mmdet'):
            return DATASETS.build(dict(cfg, **keys))

    assert len(data(metainfo=dict(classes=('ship',)))) == 1
    return message_of(data)


@reproduces('Annotations are not found')
def no_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = load_config(str(ROOT / 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py'))
    with DefaultScope.overwrite_default_scope('mmdet'):
        message = message_of(build_loader, cfg.train_dataloader)
        cfg.train_dataloader.dataset.data_root = f'{tmp_path}/'
        (tmp_path / 'annotations').mkdir()
        shapes(tmp_path / 'annotations', 'person')
        cfg.train_dataloader.dataset.ann_file = 'annotations/train.json'
        build_loader(cfg.train_dataloader)
    return message


class Forgetful(ProjectedAttention):
    """Has a parameter that no output depends on."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.forgotten = nn.Parameter(torch.zeros(1))

    def attend(self, q, k, v, hw_shape):
        return v


@reproduces('Parameters without a gradient in several processes')
def unused(tmp_path):
    from mmengine.model import MMDistributedDataParallel

    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{tmp_path}/store', rank=0, world_size=1
    )

    def steps(model):
        model = MMDistributedDataParallel(model)
        for _ in range(2):
            sum(x.mean() for x in model(torch.rand(2, 3, 64, 64))).backward()

    ours = mmlinattn.registry.MODELS
    ours.register_module(module=Forgetful)
    try:
        # ours: what is not returned is frozen, and waits for nobody
        steps(build(dict(TINY, out_indices=(0, 1))))
        cfg = dict(TINY, attention=dict(type='mmlinattn.Forgetful'))
        return message_of(steps, build(cfg))
    finally:
        ours.module_dict.pop('Forgetful')
        torch.distributed.destroy_process_group()


@reproduces('Images that are too small')
def small_images(tmp_path):
    model = build(TINY)
    model(torch.rand(1, 3, 32, 33))
    return message_of(model, torch.rand(1, 3, 31, 64))


@reproduces('Weights only load failed')
def weights_only(tmp_path):
    from mmengine.logging import HistoryBuffer

    path = tmp_path / 'epoch_1.pth'
    content = dict(state_dict={}, message_hub=dict(loss=HistoryBuffer([1.0], [1])))
    torch.save(content, path)
    mmlinattn.weights.read_checkpoint(str(path))
    return message_of(torch.load, path, weights_only=True)


@reproduces('A file holds more than weights')
def more_than_weights(tmp_path, monkeypatch):
    path = tmp_path / 'x.pth'
    torch.save(dict(state_dict={}, extra=os.getcwd), path)
    message = message_of(mmlinattn.weights.read_checkpoint, str(path))
    monkeypatch.setenv('MMLINATTN_TRUST', '1')
    mmlinattn.weights.read_checkpoint(str(path))
    return message.replace(str(path), 'x.pth')


@reproduces('`mmlinattn::` is not known')
def prefix(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text("_base_ = 'mmlinattn::soft/retinanet_softpp-t_fpn_1x_coco.py'\n")
    code = f'from mmengine.config import Config; Config.fromfile({str(path)!r})'
    message = run(sys.executable, '-c', code).splitlines()[-1]
    subprocess.run(
        [sys.executable, '-c', f'import mmlinattn; mmlinattn.register(); {code}'],
        check=True,
    )
    return message


@reproduces('Mixed precision without a GPU')
def amp(tmp_path, monkeypatch):
    config = ROOT / 'configs/soft/softpp-t_in1k.py'
    command = [sys.executable, ROOT / 'tools/train.py', config, '--amp']
    options = '--cfg-options', 'optim_wrapper.dtype=float16'
    return run(*command, *options, cwd=tmp_path).strip()


def test_every_error_is_reproduced():
    assert set(CASES) == set(SECTIONS)


@pytest.mark.parametrize('title', CASES)
def test_error(title, tmp_path, monkeypatch):
    """The page quotes it; an ellipsis leaves out what differs between versions."""
    case = CASES[title]
    takes = inspect.signature(case).parameters
    values = dict(tmp_path=tmp_path, monkeypatch=monkeypatch)
    printed = ' '.join(case(**{k: x for k, x in values.items() if k in takes}).split())
    (quoted,) = re.findall(r'^```text\n(.*?)^```$', SECTIONS[title], re.M | re.S)
    for part in ' '.join(quoted.split()).split('...'):
        assert part.strip() in printed
