"""What mmlinattn adapt takes as a teacher, and what it refuses."""

import threading
from argparse import Namespace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from adaptations import argv_of, write_world

from mmlinattn.adaptation import carry_weights, student_config
from mmlinattn.commands import adapt, students
from mmlinattn.commands.photo_files import list_photos
from mmlinattn.commands.teachers import find_teacher, load_teacher
from mmlinattn.engine.preflight import build_model, core_of
from mmlinattn.own_config.remembered import remembered_model
from mmlinattn.parts import build_model as build_own
from mmlinattn.utils import load_config
from mmlinattn.weights import read_file


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A detector of one's own with its weights and photos."""
    return write_world(tmp_path_factory.mktemp('adapt'))


WRONG = {
    ('--teacher', 'swin-t-lokal_in1k'): 'did you mean swin-t-local_in1k',
    ('--teacher', 'none.py'): '--teacher none.py: there is no such config',
    ('--weights', 'none.pth'): "--weights='none.pth': there is no such file",
    ('--weights', 'http://127.0.0.1:9/a.pth'): 'cannot be downloaded (',
    ('--attention', 'elfat'): "no attention 'elfat': did you mean ELFATT",
    ('--attention', 'ELFATT', 'ELFATT'): 'one entry for each of 4 stages, got 2',
    ('--attention', 'LinearSOFTPlusPlus'): 'have the same attentions, Soft',
    ('--attention-options', 'block_size=50'): 'block_size must be a square number',
    ('--data', 'none'): '--data none: there is no such folder',
    ('--data', 'empty'): '--data empty: there is no photo in it',
    ('--data', 'damaged'): '--data damaged: all photos in it are damaged',
    ('--out', 'a.txt'): '--out a.txt: the name must end in .pth',
    ('--out', 'there.pth'): 'there.pth exists: give --overwrite',
    ('--size', '8'): 'argument --size: must be 32 to 4096, got 8',
}


@pytest.mark.skipif(torch.cuda.is_available(), reason='there is a GPU')
def test_no_gpu(world, error_of):
    line = error_of(adapt.main, argv_of(world, 'wrong', '--device', 'cuda'))
    assert '--device cuda: PyTorch finds no GPU here' in line


@pytest.mark.parametrize('option', WRONG, ids='-'.join)
def test_wrong_input(world, tmp_path, monkeypatch, error_of, capsys, option):
    """A line, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'damaged').mkdir()
    (tmp_path / 'damaged' / 'a.jpg').write_bytes(b'no photo')
    (tmp_path / 'there.pth').touch()
    before = sorted(tmp_path.rglob('*'))
    argv = [x for x in argv_of(world, 'wrong') if x != option[0]]
    values = dict(zip(argv_of(world, 'wrong')[::2], argv_of(world, 'wrong')[1::2]))
    values.pop('--work-dir')
    values[option[0]] = None
    words = [word for key, x in values.items() if x for word in (key, x)]
    with pytest.raises(SystemExit, match='2'):
        adapt.main([*words, *option])
    assert argv and WRONG[option] in capsys.readouterr().err.splitlines()[-1]
    assert sorted(tmp_path.rglob('*')) == before


@pytest.mark.parametrize(
    'name, kind, weights',
    [
        ('softpp-t_in1k', 'SOFTPlusPlus', None),
        ('swin_tiny_local', 'SwinTransformer', 'swin_tiny_patch4_window7_224.pth'),
        ('retinanet_swin-t-local_fpn_1x_coco', 'SwinTransformer', 'swin_tiny_patch4'),
        ('mlla-t_in1k', 'MLLA', '://'),
    ],
)
def test_names_of_teachers(name, kind, weights):
    if weights is None:
        with pytest.raises(ValueError, match='names no weights: give --weights'):
            find_teacher(name, None)
        weights = 'mine.pth'
        teacher = find_teacher(name, weights)
    else:
        teacher = find_teacher(name, None)
    assert (
        teacher.backbone['type'] == f'mmlinattn.{kind}' and weights in teacher.weights
    )
    assert teacher.base.startswith('mmlinattn::') and teacher.size == 224
    assert teacher.preprocessor['to_rgb']
    assert bool(teacher.license) == ('://' in weights or 'swin' in weights)
    assert teacher.license in teacher.describe()


CLASSIFIER = """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch=dict(embed_dims=8, depths=[1, 1], num_heads=[1, 2]),
        out_indices=(1,),
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=16),
)
load_from = 'a.pth'
"""


@pytest.mark.parametrize('is_whole', [True, False])
def test_a_neck_without_weights_is_no_part(tmp_path, monkeypatch, is_whole):
    """A classifier's checkpoint is whole with its backbone and its head."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.py').write_text(CLASSIFIER)
    weights = build_model(load_config('a.py')).state_dict()
    if not is_whole:
        weights.pop('head.fc.bias')
    torch.save(dict(state_dict=weights), 'a.pth')
    assert load_teacher(find_teacher('a.py', None)).is_whole == is_whole


def test_weights_of_an_address_are_downloaded_once(world, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path))
    handler = partial(SimpleHTTPRequestHandler, directory=world)
    monkeypatch.setattr(SimpleHTTPRequestHandler, 'log_message', lambda *args: None)
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f'http://127.0.0.1:{server.server_port}/teacher.pth'
        loaded = load_teacher(find_teacher(f'{world}/mine.py', address))
        server.shutdown()
    again = load_teacher(find_teacher(f'{world}/mine.py', address))
    for key, x in again.backbone.state_dict().items():
        assert torch.equal(x, loaded.backbone.state_dict()[key])
    assert loaded.others.keys() == again.others.keys()
    assert loaded.meta == dict(classes=['a', 'b'])


def test_students_of_public_models_are_remembered(tmp_path):
    """Of a name in our configs, new-config finds the configs of other tasks."""
    meta = dict(backbone=dict(type='mmlinattn.SwinTransformer'))
    meta.update(model_name='classifier swin-t-local', is_whole=True)
    torch.save(dict(meta=dict(adapted=meta), state_dict={}), tmp_path / 'a.pth')
    remembered = remembered_model(tmp_path / 'a.pth')
    assert (remembered.method, remembered.backbone) == ('classifier', 'swin-t-local')
    assert remembered.adapted == meta['backbone'] and remembered.is_whole


def test_photos_below_folders(world):
    assert len(list_photos(world / 'coco', below=True)) == 16
    assert list_photos(world / 'coco') == []


HOST = """
_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'
default_scope = 'mmdet'
model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=8,
        depths=(1, 1, 2, 1),
        num_heads=(1, 2, 2, 4),
        out_indices=(1, 2, 3),
    ),
    neck=dict(in_channels=[16, 32, 64], out_channels=16),
    bbox_head=dict(in_channels=16, stacked_convs=1, feat_channels=16),
)
load_from = 'a.pth'
"""
WRAPPED = """
_base_ = 'plain.py'
preprocessor = dict(type='DetDataPreprocessor')
preprocessor = dict(type='MultiBranchDataPreprocessor', data_preprocessor=preprocessor)
model = dict(
    _delete_=True,
    type='SoftTeacher',
    detector=dict(**_base_.model),
    data_preprocessor=preprocessor,
    semi_train_cfg=dict(freeze_teacher=True),
)
"""


@pytest.mark.parametrize('is_wrapped', [False, True])
def test_a_detector_with_the_backbone_of_its_library(tmp_path, monkeypatch, is_wrapped):
    """Its student has ours in its place; with all other parts, they fit together."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'plain.py').write_text(HOST)
    name = 'wrapped.py' if is_wrapped else 'plain.py'
    (tmp_path / 'wrapped.py').write_text(WRAPPED)
    whole = build_model(load_config('plain.py'))
    torch.save(dict(state_dict=whole.state_dict()), 'a.pth')
    teacher = find_teacher(name, None)
    assert teacher.backbone['type'] == 'mmlinattn.SwinTransformer'
    loaded = load_teacher(teacher)
    assert loaded.is_whole == (not is_wrapped)
    cfg = student_config(teacher.backbone, 'ELFATT')
    student = build_own(cfg)
    carry_weights(loaded.backbone, student)
    args = Namespace(attention=['ELFATT'], epochs=1, features_epochs=0)
    photos = students.split_photos([tmp_path / 'a.jpg'], [(8, 8)])
    plan = students.Plan(teacher, cfg, photos, tmp_path, args)
    weights = {f'backbone.{key}': x for key, x in student.state_dict().items()}
    students.write_student(plan, loaded, weights, tmp_path / 'student.pth')
    made = load_config('student.py')
    model = core_of(build_model(made))
    assert type(model.backbone.stages[0].blocks[0].attn).__name__ == 'ELFATT'
    if is_wrapped:
        model.backbone.init_weights()
        for key, x in model.backbone.state_dict().items():
            assert torch.equal(x, weights[f'backbone.{key}'])
    else:
        assert made.load_from == f'{tmp_path}/student.pth'
        model.load_state_dict(read_file('student.pth')['state_dict'])
