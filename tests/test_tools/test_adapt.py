"""mmlinattn adapt: from a trained detector to a student that trains on."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from miniature_backbones import CASES
from mmengine.registry import MODELS
from small_configs import draw_shapes

from mmlinattn.adaptation import carry_weights, student_config
from mmlinattn.commands import adapt, new_config, students
from mmlinattn.commands.photo_files import list_photos
from mmlinattn.commands.teachers import find_teacher, load_teacher
from mmlinattn.engine.preflight import build_model, core_of
from mmlinattn.models import SwinTransformer
from mmlinattn.own_config.remembered import remembered_model
from mmlinattn.parts import build_model as build_own
from mmlinattn.runs import backbone_time
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet
from mmlinattn.weights import fit, load_pretrained, read_file

OPTIONS = [
    *('--size', '32', '--epochs', '2', '--features-epochs', '1'),
    *('--batch-size', '4', '--workers', '0'),
]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A detector of one's own, its config from new-config, its weights and photos."""
    folder = tmp_path_factory.mktemp('adapt')
    draw_shapes('coco', folder / 'coco', 14, 2)
    data = ['--data', f'{folder}/coco', '--task', 'det', '--no-estimate']
    model = ['--backbone', 'softpp-micro-linear', '--start', 'none']
    new_config.main([*data, *model, '--out', f'{folder}/mine.py'])
    with quiet():
        model = build_model(load_config(f'{folder}/mine.py'))
        model.init_weights()
    meta = dict(dataset_meta=dict(classes=['a', 'b']))
    weights = dict(meta=meta, state_dict=model.state_dict())
    torch.save(weights, folder / 'teacher.pth')
    return folder


@pytest.fixture(scope='module')
def patched():
    with pytest.MonkeyPatch.context() as patch:
        # a process of its own, which takes seconds
        patch.setattr(backbone_time, 'peak_of', lambda *args: None)
        yield patch


def argv_of(world, out, *others):
    teacher = ['--teacher', f'{world}/mine.py', '--weights', f'{world}/teacher.pth']
    teacher += ['--data', f'{world}/coco/train2017']
    attention = () if '--attention' in others else ('--attention', 'ELFATT')
    place = ['--out', f'{world}/{out}.pth', '--work-dir', f'{world}/{out}']
    return [*teacher, *attention, *place, *OPTIONS, *others]


@pytest.fixture(scope='module')
def adapted(world, patched):
    """What a run prints, and its folder."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        adapt.main(argv_of(world, 'student'))
    return out.getvalue(), world


def test_a_line_an_epoch_and_a_table(adapted):
    lines = adapted[0].splitlines()
    epochs = [line for line in lines if ', epoch ' in line]
    assert [line.partition(':')[0] for line in epochs] == [
        *('attention, epoch 1 of 2', 'attention, epoch 2 of 2'),
        'features, epoch 1 of 1',
    ]
    assert 'mean error ' in epochs[0] and '(0.0 ' in epochs[0] and ' 2.3 ' in epochs[0]
    cells = [line.split() for line in lines]
    (block,) = (row for row in cells if row[:1] == ['2.3'])
    assert float(block[2]) < float(block[1])
    (teacher,) = (row for row in cells if row[:1] == ['teacher'])
    assert len(teacher) == 4 and teacher[3] == '-'
    assert 'errors of 2 photos that were held back' in adapted[0]
    assert 'mmlinattn train' in adapted[0] and '--start' in adapted[0]


def test_the_checkpoint_says_what_it_is_made_from(adapted):
    _, world = adapted
    file = read_file(world / 'student.pth')
    notes = file['meta']['adapted']
    assert notes['teacher'] == f'{world}/mine.py' and notes['license'] == ''
    assert notes['weights'] == f'{world}/teacher.pth' and notes['photos'] == 12
    assert notes['backbone']['attention'] == dict(type='ELFATT')
    assert file['meta']['dataset_meta'] == dict(classes=['a', 'b'])
    teacher = read_file(world / 'teacher.pth')['state_dict']
    entries = file['state_dict']
    others = {key for key in teacher if not key.startswith('backbone.')}
    assert others and all(torch.equal(teacher[key], entries[key]) for key in others)
    assert not [key for key in entries if key.startswith('teacher.')]
    changed = {
        key.partition('.attn.')[0]
        for key, x in entries.items()
        if key.startswith('backbone.')
        and (key not in teacher or not torch.equal(x, teacher[key]))
    }
    assert len(changed) > 5  # features align all of the student


def test_every_way_to_load_it(adapted):
    """By itself, by an entry of init_cfg, and as a whole model by its config."""
    _, world = adapted
    path = str(world / 'student.pth')
    backbone = read_file(path)['meta']['adapted']['backbone']
    weights = read_file(path)['state_dict']
    model = build_own(backbone)
    load_pretrained(model, path)
    entry = dict(type='Pretrained', checkpoint=path)
    by_entry = MODELS.build(dict(backbone, init_cfg=entry))
    with quiet():
        by_entry.init_weights()
    for loaded in (model, by_entry):
        for key, x in loaded.state_dict().items():
            assert torch.equal(x, weights[f'backbone.{key}'])
    cfg = load_config(str(world / 'student.py'))
    assert cfg.load_from == path and cfg.pretrained is None
    whole = build_model(cfg)
    theirs = build_model(load_config(f'{world}/mine.py')).backbone
    assert whole.backbone.out_indices == theirs.out_indices
    assert type(whole.backbone.stages[0].blocks[0].attn).__name__ == 'ELFATT'
    whole.load_state_dict(weights)


def test_a_plot(adapted):
    _, world = adapted
    assert (world / 'student.png').read_bytes().startswith(b'\x89PNG')
    record = json.loads((world / 'student' / adapt.RECORD).read_text())
    assert len(record['attention']['epochs']) == 2
    assert record['attention']['before'].keys() >= {'0.0', '2.3'}
    assert len(record['features']['epochs']) == 1


def test_new_config_starts_from_it(adapted, tmp_path):
    """With the student's attention, and all other parts of the model."""
    cfg = next_config(adapted, tmp_path, 'det')
    assert cfg.load_from == f'{adapted[1]}/student.pth' and cfg.pretrained is None
    model = build_model(cfg)
    assert model.backbone.stages[2].blocks[0].attn.block_size == 196
    fitted = fit(model, read_file(cfg.load_from))
    assert fitted.whole


def next_config(adapted, folder, task, *more):
    """The config of a training that starts from the student."""
    _, world = adapted
    argv = ['--data', f'{world}/coco', '--task', task, '--no-estimate', *more]
    out = folder / 'next.py'
    new_config.main([*argv, '--start', f'{world}/student.pth', '--out', f'{out}'])
    return load_config(str(out))


@pytest.mark.parametrize('words', [('seg',), ('det', '--detector', 'retinanet')])
def test_new_config_of_another_model_starts_its_backbone(adapted, tmp_path, words):
    cfg = next_config(adapted, tmp_path, *words)
    assert cfg.pretrained == f'{adapted[1]}/student.pth' and not cfg.get('load_from')
    load_pretrained(build_model(cfg).backbone, cfg.pretrained)


def test_new_config_for_another_backbone(adapted, tmp_path, error_of):
    _, world = adapted
    argv = ['--data', f'{world}/coco', '--task', 'det', '--out', f'{tmp_path}/a.py']
    argv += ['--start', f'{world}/student.pth', '--backbone', 'swin-t-local']
    line = error_of(new_config.main, argv)
    assert 'has its backbone softpp-micro-linear: train the config' in line
    assert f'{world}/student.py' in line


@pytest.mark.full
def test_resumed(adapted, patched, tmp_path, capsys):
    """After the first stage's first epoch, it ends with the same weights, bit for bit;
    a stage that is done does not run again."""
    _, world = adapted
    argv = argv_of(world, 'again')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapt.runs.EpochLines, 'after_train_epoch', stop_after_first)
        with pytest.raises(KeyboardInterrupt):
            adapt.main(argv)
    assert 'epoch_1.pth' in str([*(world / 'again' / 'attention').iterdir()])
    adapt.main([*argv, '--resume'])
    lines = capsys.readouterr().out.splitlines()
    assert [x.partition(':')[0] for x in lines if ', epoch ' in x] == [
        'attention, epoch 2 of 2',
        'features, epoch 1 of 1',
    ]
    ours, theirs = (
        read_file(world / f'{name}.pth')['state_dict'] for name in ('again', 'student')
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_a_run_that_is_done(adapted, patched, capsys):
    """It does not run again, and writes the same files."""
    _, world = adapted
    before = (world / 'student.pth').read_bytes(), (world / 'student.py').read_bytes()
    adapt.main(argv_of(world, 'student', '--resume', '--overwrite'))
    assert ', epoch ' not in capsys.readouterr().out
    after = (world / 'student.pth').read_bytes(), (world / 'student.py').read_bytes()
    assert before == after
    record = json.loads((world / 'student' / adapt.RECORD).read_text())
    assert len(record['attention']['epochs']) == 2


@pytest.mark.full
def test_killed(adapted):
    """In an iteration of each stage, and resumed: the same weights, bit for bit."""
    _, world = adapted
    command = [sys.executable, '-m', 'mmlinattn', 'adapt', *argv_of(world, 'killed')]
    for i, stage in enumerate(('attention', 'features', None)):
        process = subprocess.Popen(
            [*command, *(['--resume'] if i else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(os.environ, OMP_NUM_THREADS='1'),
            start_new_session=True,
        )
        folder = world / 'killed' / str(stage)
        while stage and process.poll() is None:
            logs = [path.read_text() for path in folder.glob('*/*.log')]
            # of the first stage, its second epoch
            begun = folder / 'epoch_1.pth' if stage == 'attention' else None
            if any('Checkpoints will be saved' in log for log in logs) and (
                begun is None or begun.exists()
            ):
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.01)
        output = process.communicate()[0]
        assert process.returncode == (-signal.SIGKILL if stage else 0), output[-3000:]
    ours, theirs = (
        read_file(world / f'{name}.pth')['state_dict'] for name in ('killed', 'student')
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def stop_after_first(hook, runner):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    'more, text',
    [
        (('--resume', '--epochs', '3'), '--epochs 3: the run in .* began with 2'),
        (('--resume', '--lr', '1'), '--lr 1.0: the run in .* began with 0.001'),
        ((), 'again is the folder of an earlier run: --resume goes on with it'),
    ],
)
def test_of_an_earlier_run(adapted, error_of, more, text):
    _, world = adapted
    shutil.copytree(world / 'student', world / 'again', dirs_exist_ok=True)
    argv = argv_of(world, 'again', *more)
    argv[argv.index('--out') + 1] = f'{world}/other.pth'
    assert re.search(text, error_of(adapt.main, argv))


def test_photos_changed(adapted, error_of, tmp_path):
    """A resumed run reads the photos that it began with."""
    _, world = adapted
    shutil.copytree(world / 'coco' / 'train2017', tmp_path / 'photos')
    shutil.copytree(world / 'student', tmp_path / 'run')
    record = json.loads((tmp_path / 'run' / adapt.RECORD).read_text())
    record['options']['data'] = f'{tmp_path}/photos'
    (tmp_path / 'run' / adapt.RECORD).write_text(json.dumps(record))
    argv = [*argv_of(world, 'other', '--resume'), '--data', f'{tmp_path}/photos']
    line = error_of(adapt.main, [*argv, '--work-dir', f'{tmp_path}/run'])
    assert 'photos: the run in' in line and 'began with other photos' in line


def test_the_history_of_a_long_run():
    """The log keeps a number of iterations that may begin within an epoch."""
    values = np.array([9.0, 1, 2, 3, 5, 7, 9])
    scalars = {
        'train/loss_0.1': SimpleNamespace(data=(values, None)),
        'train/lr': SimpleNamespace(data=(values, None)),
    }
    hub = SimpleNamespace(log_scalars=scalars)
    assert adapt.runs.errors_by_epoch(hub, 3) == [{'0.1': 2.0}, {'0.1': 7.0}]
    line = adapt.runs.describe({str(i): float(i) for i in range(12)})
    assert line.startswith('mean error 5.5000 (0 0.0000, ') and ', ..., ' in line


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
    found = remembered_model(tmp_path / 'a.pth')
    assert (found.method, found.backbone) == ('classifier', 'swin-t-local')
    assert found.adapted == meta['backbone'] and found.is_whole


def test_photos_below_folders(world):
    assert len(list_photos(world / 'coco', below=True)) == 16
    assert list_photos(world / 'coco') == []


@pytest.mark.full
def test_time_and_memory():
    costs = backbone_time.measure_costs(
        {name: CASES[name] for name in ('SwinTransformer', 'SOFTPlusPlus')},
        (64, 96),
        'cpu',
    )
    for name, cost in costs.items():
        model = build_own(CASES[name])
        assert cost.seconds > 0
        assert cost.parameters == sum(x.numel() for x in model.parameters())
        assert cost.memory is None or cost.memory >= 0
    assert isinstance(build_own(CASES['SwinTransformer']), SwinTransformer)


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
