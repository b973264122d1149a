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
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from adaptations import argv_of, write_world
from miniature_backbones import CASES
from mmengine.registry import MODELS

from mmlinattn.commands import adapt, new_config, students
from mmlinattn.engine.preflight import build_model
from mmlinattn.models import SwinTransformer
from mmlinattn.parts import build_model as build_own
from mmlinattn.runs import backbone_time
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet
from mmlinattn.weights import fit, load_pretrained, read_file


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A detector of one's own with its weights and photos."""
    return write_world(tmp_path_factory.mktemp('adapt'))


@pytest.fixture(scope='module')
def patched():
    with pytest.MonkeyPatch.context() as patch:
        # a process of its own, which takes seconds
        patch.setattr(backbone_time, 'peak_of', lambda *args: None)
        yield patch


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


def test_stages_learn_at_the_rates_of_our_configs(adapted):
    stages = [
        ('attention', 'attention-alignment', 0.002),
        ('features', 'feature-alignment', 0.0005),
    ]
    for name, file, rate in stages:
        cfg = load_config(f'{adapted[1]}/student/{file}.py')
        assert cfg.optim_wrapper.optimizer.lr == rate
        assert students.rate_of(name, 0.01) == pytest.approx(5 * rate)


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
        (('--resume', '--lr', '1'), '--lr 1.0: the run in .* began without --lr'),
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
