"""The suites of measurements; no measurement is asserted."""

import json
import subprocess
import sys
from functools import partial
from importlib import import_module

import pytest
import torch
from loading import ROOT
from mmengine.model import BaseModel
from small_configs import draw_shapes
from torch import nn

from mmlinattn.commands import new_config
from mmlinattn.functional import softmax_free_attention

pytestmark = pytest.mark.openmmlab


@pytest.fixture
def load(monkeypatch):
    """Imports one of the benchmarks' modules."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    yield lambda name: import_module(name)
    sys.modules.pop('run', None)


@pytest.fixture
def run(load):
    """The command, by its words."""
    command = load('run')
    return lambda words: command.main(words.split())


@pytest.mark.parametrize(
    'suite, only',
    [
        ('ops', '1×64×200'),
        ('mmcv_ops', 'DETR'),
        pytest.param('detectors', 'RetinaNet', marks=pytest.mark.full),
    ],
)
def test_small_suites(run, suite, only, capsys):
    """Every step of every variant."""
    run(f'--suite {suite} --only={only} --small --rounds 1 --threads 1')
    assert 'left out' not in capsys.readouterr().out


def test_detectors_take_batches_to_their_device(load):
    """Batches are made on the CPU, and detectors are parts of other modules."""
    inner = type('Model', (BaseModel,), dict(forward=None))()
    inner.weight = torch.nn.Parameter(torch.zeros(1))
    torch.nn.Sequential(load('side_by_side.models').Detector(inner)).to('meta')
    assert inner.data_preprocessor.device.type == 'meta'


def test_the_explicit_form_is_our_operator(load):
    """In models, too, whether Newton has converged or not."""
    baselines, models = load('side_by_side.baselines'), load('side_by_side.models')
    explicit = baselines.explicit_attention
    inputs = [
        (scale * torch.randn(2, 2, n, 8, dtype=torch.float64)).requires_grad_()
        for n, scale in ((20, 1), (6, 1.5), (20, 1))
    ]
    out, expected = softmax_free_attention(*inputs), explicit(*inputs)
    torch.testing.assert_close(expected, out)
    weight = torch.randn_like(out)
    grads, wanted = (
        torch.autograd.grad((weight * x).sum(), inputs) for x in (expected, out)
    )
    torch.testing.assert_close(grads, wanted, rtol=1e-6, atol=1e-7)
    small = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
    more = dict(sampling_ratios=(4, 1), kernel_sizes=(3, 3))
    cfg = dict(type='SOFT', arch=small, attn_norm=True, **more)
    ours = models.backbone(**cfg)()
    model = models.backbone(**cfg, context=baselines.explicit_in_models)()
    model.module.load_state_dict(ours.state_dict())
    x = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(model.eval()(x), ours.eval()(x), rtol=1e-3, atol=1e-4)


def test_fused_attention_of_other_models_gives_their_outputs(load):
    """It asks PyTorch's attention for no matrix, and changes nothing else."""
    models = load('side_by_side.models')
    cfg = dict(models.PVT_V2_B1, embed_dims=8, num_layers=[1, 1, 1, 1])
    plain, fused = (
        models.backbone(**cfg, change=change)()
        for change in (None, models.fuse_attention)
    )
    fused.load_state_dict(plain.state_dict())
    x = torch.rand(2, 3, 64, 96)
    torch.testing.assert_close(fused.eval()(x), plain.eval()(x), rtol=1e-4, atol=1e-5)
    attention = next(m for m in fused.modules() if isinstance(m, nn.MultiheadAttention))
    tokens = torch.rand(6, 2, attention.embed_dim)
    assert attention(tokens, tokens, tokens)[1] is None
    with pytest.raises(ValueError, match='Linear has no'):
        models.fuse_attention(nn.Linear(2, 2))


@pytest.mark.full
def test_threads_of_a_busy_machine(tmp_path):
    """Every setting, alone and beside other processes, which end."""
    out = tmp_path / 'busy.json'
    size = ['--size', '1', '3', '32', '32', '--rounds', '1', '--turns', '1']
    command = [sys.executable, ROOT / 'benchmarks/busy_machine.py', '--out', out, *size]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads(out.read_text())['rows']
    assert [row['busy'] for row in rows] == [0] * 5 + [2] * 5
    assert all(row['ratio'] > 0 for row in rows)


def test_time_is_drawn_by_size(load, tmp_path):
    """From three sizes on."""
    rows = [
        dict(case='x', step='forward', shape=(1, 3, 9, n), variant=name, seconds=n)
        for n in (1, 2, 4)
        for name in ('one', 'two')
    ]
    for count in (4, 6):
        load('side_by_side.plot').plot_times(rows[:count], tmp_path / f'{count}.png')
    assert [x.name for x in tmp_path.iterdir()] == ['6.png']


@pytest.mark.parametrize('steps', (['forward'], ['forward', 'forward+backward']))
def test_labels_of_bars_are_inside(steps, load):
    """In one column of a page on a phone, also behind the longest bar."""
    ratios = {'PVTv2-B1 (mmdet, fused)': 1.0, 'SOFT++-T, linear': 9.13, 'none': None}
    rows = [
        dict(case='RetinaNet', shape=[1, 3, 800, 1344], step=step, variant=name)
        | (dict(ratio=ratio, memory_ratio=ratio / 9) if ratio else {})
        for step in steps
        for name, ratio in ratios.items()
    ]
    figure = load('side_by_side.plot').ratios_figure(rows)
    figure.draw_without_rendering()
    assert len(figure.axes) == 2
    for axis in figure.axes:
        area = axis.get_window_extent()
        assert len(axis.texts) == len(ratios)
        for label in filter(lambda x: x.get_text(), axis.texts):
            extent = label.get_window_extent()
            assert area.x0 < extent.x0 and extent.x1 < area.x1


def test_results_are_written(load, run, monkeypatch, tmp_path, capsys):
    """What a person wrote above the mark of a page stays."""
    sizes = dict(one=4, two=8, broken=8)

    def layers(size):
        return torch.nn.Sequential(torch.nn.Linear(4, size), torch.nn.Linear(size, 4))

    case = load('side_by_side.cases').Case(
        'linear',
        {name: partial(layers, size) for name, size in sizes.items()},
        (1, 3, 6, 4),
        small=(1, 3, 2, 4),
        paper={('two', 'two'): (2, 3)},
    )

    def peak(index, variant, *args):
        if variant == 'broken':
            return dict(error='out of memory')
        return dict(bytes=sizes[variant] * 2**20)

    monkeypatch.setitem(load('side_by_side.registry').SUITES, 'ops', lambda: [case])
    monkeypatch.setattr(load('side_by_side.measuring'), 'peak_of_variant', peak)
    page, mark = tmp_path / 'ops_cpu_batch2.md', load('side_by_side.report').MEASURED
    page.write_text(f'# By hand\n\n{mark}\nold')
    words = f'--suite ops --rounds 2 --batch 2 --small --out {tmp_path} --overwrite'
    run(words)
    assert 'broken is left out: out of memory' in capsys.readouterr().out
    rows = json.loads(page.with_suffix('.json').read_text())['rows']
    first = [x for x in rows if x['variant'] == 'one']
    assert [x['step'] for x in first] == ['forward', 'forward+backward']
    for row in first:
        assert row['baseline'] == 'one' and row['shape'] == [2, 3, 2, 4]
        assert row['ratio'] == row['memory_ratio'] == 1
    # the paper's comparison has a row of its own
    extra = [row for row in rows if 'paper' in row]
    assert [row['baseline'] for row in extra] == ['two', 'two']
    text = page.read_text()
    assert text.startswith(f'# By hand\n\n{mark}\nSuite') and 'old' not in text
    assert '| linear | 2×3×2×4 | forward | two | two |' in text
    assert page.with_suffix('.png').is_file()
    with pytest.raises(SystemExit):
        run(words.replace(' --overwrite', ''))


@pytest.fixture
def trainings(load, monkeypatch):
    """Trainings with and without padding, small."""
    module = load('padding_training')
    for name, count in dict(NUM_TRAIN=8, NUM_TEST=3).items():
        monkeypatch.setattr(module, name, count)
    return module


@pytest.mark.parametrize('sides, equal', [((64,), True), ((32, 64), False)])
def test_trainings_differ_by_their_padding_alone(trainings, sides, equal):
    """Without padding, both are the same to the last bit."""
    fitted = []
    for padding in trainings.PADDING:
        training = trainings.Training(
            model='Swin, elfatt',
            padding=padding,
            anchors='image',
            sides='several',
            steps=2,
            rate=2e-3,
            norm_eval=False,
            seed=0,
        )
        detector = trainings.build(training.model, training.seed)
        detector.backbone.mask_padding = padding == 'left out'
        photos = trainings.draw_all(8, 0, sides)
        fitted.append(trainings.fit(detector, photos, training))
    assert (fitted[0] == fitted[1]) == equal


def test_anchors_beyond_an_image_are_not_trained(trainings):
    """MMDetection rounds images up to 32 pixels."""
    detector = trainings.build('Swin, elfatt', 0)
    for side, equal in ((64, True), (48, False)):
        batch = trainings.batch_of(trainings.draw_all(2, 0, (side,)))
        mm, image = (trainings.losses(detector, batch, x) for x in trainings.ANCHORS)
        assert torch.equal(mm, image) == equal


def test_a_training_is_not_repeated(trainings, monkeypatch, tmp_path):
    out = tmp_path / 'rows.json'
    words = '--models LinearSOFTPlusPlus --anchors image --sides one --seeds 0'
    words = f'{words} --steps 1 --out {out}'.split()
    trainings.main(words)
    rows = json.loads(out.read_text())['rows']
    assert [row['padding'] for row in rows] == [*trainings.PADDING]
    assert len(rows[0]['differences']) == 4 and min(rows[0]['differences']) > 0
    monkeypatch.setattr(trainings, 'measure', None)
    trainings.main(words)


def test_stages_of_an_adaptation(load):
    """Alignment lessens its error on photographs that are held back, the controls are
    what they are called, and accuracies are those of the test."""
    study, models = load('adaptation'), load('adaptation_models')
    arch = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2])
    cfg = dict(models.TEACHERS['Swin'], arch=arch)
    teacher = models.Classifier(cfg)
    squares = torch.randint(0, 256, (40, 3, models.SQUARE, models.SQUARE))
    images = squares.to(torch.uint8), torch.arange(40) % models.CLASSES
    student = models.backbone_of(cfg, 'ELFATT')
    made = models.Adaptation(teacher, 'ELFATT', student, seed=0)
    made.carry()
    for stage, rate in (('attention', 0.003), ('features', 0.0001)):
        before = made.error(stage, images)
        made.align(stage, images, rate, seed=0, epochs=4)
        assert made.error(stage, images) < before
    new = models.Adaptation(
        teacher, models.NEW, models.backbone_of(cfg, models.NEW), seed=1
    )
    new.carry()
    ours, theirs = (
        model.backbone.stages[0].blocks[0] for model in (new.student, teacher)
    )
    assert torch.equal(ours.ffn.layers[1].weight, theirs.ffn.layers[1].weight)
    assert not torch.equal(ours.attn.qkv.weight, theirs.attn.qkv.weight)
    same = models.Adaptation(teacher, models.SAME, cfg, seed=1)
    same.carry()
    carried = same.student.backbone.state_dict()
    assert all(carried[k].equal(x) for k, x in teacher.backbone.state_dict().items())
    averaging = models.backbone_of(cfg, models.MEAN)
    averaging = models.Adaptation(teacher, models.MEAN, averaging, seed=1)
    averaging.carry()
    assert averaging.error('attention', images) > 0
    mean = models.MeanAttention(8, 2)
    out = mean(torch.randn(1, 6, 8), (2, 3))
    torch.testing.assert_close(out, out[:, :1].expand_as(out))
    loss, right = models.evaluate(teacher, images)
    assert loss > 0 and right * 40 == int(right * 40)
    assert study.fits('DeiT', 'FLatten') and not study.fits('DeiT', 'ELFATT')


@pytest.fixture
def fine_tuning(load, monkeypatch, tmp_path):
    """The study of starts, with trainings of a few steps, and a config for it."""
    study = load('fine_tuning')
    monkeypatch.setattr(study, 'SCALE', (64, 48))
    monkeypatch.setattr(study, 'ITERATIONS', 3)
    draw_shapes('coco', tmp_path / 'coco', 14, 2)
    data = f'--data {tmp_path}/coco --task det --detector retinanet --no-estimate'
    model = f'--backbone softpp-micro-linear --start none --out {tmp_path}/mine.py'
    new_config.main(f'{data} {model}'.split())
    return study, tmp_path / 'mine.py'


def test_detectors_start_from_weights_and_keep_frozen_stages(fine_tuning, tmp_path):
    """And a whole detector of one set starts that of another."""
    timm = pytest.importorskip('timm')
    study, config = fine_tuning
    lite0 = tmp_path / 'lite0.pth'
    torch.save(timm.create_model('efficientnet_lite0').state_dict(), lite0)
    weights = study.Weights(lite0, None, tmp_path / 'detectors')
    training = study.Training('b', study.IMAGENET, 1.0, 1.0, frozen=2, seed=0)
    file = weights.detector('b')
    row = study.measure(training, config, weights, file)
    assert row['start'] == study.IMAGENET and -1 <= row['AP'] <= 1
    before = list(torch.load(lite0).values())
    after = torch.load(file)['state_dict']
    equal = {
        key: torch.equal(x, before[i])
        for i, (key, x) in enumerate(after.items())
        if key.startswith('backbone.') and key.endswith('conv_pw.weight')
    }
    assert {key: x for key, x in equal.items() if '.blocks.2.' in key}
    for key, is_equal in equal.items():
        assert is_equal == any(f'.blocks.{i}.' in key for i in range(3)), key
    whole = study.Training('a', 'b', 0.1, 1.0, frozen=0, seed=0)
    cfg = study.config_of(whole, config, weights)
    assert cfg.load_from == str(file)
    assert study.measure(whole, config, weights)['factor'] == 0.1
    assert cfg.optim_wrapper.paramwise_cfg.custom_keys[study.CLASS_LAYER] == dict(
        lr_mult=10.0
    )
    fixed = study.replace(training, start=study.NORM_EVAL, frozen=0)
    study.measure(fixed, config, weights, file)
    after = torch.load(file)['state_dict']
    means = {
        key: torch.equal(x, before[i])
        for i, (key, x) in enumerate(after.items())
        if key.startswith('backbone.') and key.endswith('running_mean')
    }
    assert means and all(means.values())
    part = study.replace(whole, start='b, backbone')
    assert set(weights.backbone(part, None)) == {
        key[len('backbone.') :] for key in after if key.startswith('backbone.')
    }


def test_a_micro_detector_starts_from_a_pretraining(load, fine_tuning, tmp_path):
    """Norms of maps, which a classifier lacks, are new."""
    (study, config), pretraining = fine_tuning, load('pretraining')
    start = pretraining.STARTS['both scales']
    backbone = pretraining.build(start, is_classifier=True)
    torch.save(backbone.state_dict(), tmp_path / 'both scales.pth')
    weights = study.Weights(None, tmp_path, tmp_path / 'detectors')
    training = study.Training('a', 'micro both scales', 1.0, 1.0, frozen=1, seed=0)
    file = weights.detector('a')
    study.measure(training, config, weights, file)
    first, last = 'stages.0.blocks.0.ffn', 'stages.3.blocks.0.ffn'
    after = torch.load(file)['state_dict']
    names = [key for key in backbone.state_dict() if key.startswith((first, last))]
    assert names
    for name in names:
        is_equal = torch.equal(after[f'backbone.{name}'], backbone.state_dict()[name])
        assert is_equal == name.startswith(first), name


@pytest.mark.full
def test_students_of_a_detector(load, fine_tuning, monkeypatch, tmp_path):
    """Arms start from what they say, and results are kept."""
    study, config = load('adapted_detectors'), fine_tuning[1]
    monkeypatch.setattr(study, 'ITERATIONS', 10)
    monkeypatch.setattr(study, 'FACTORS', dict.fromkeys(study.FACTORS, (1.0,)))
    monkeypatch.setattr(study, 'RATES', dict.fromkeys(study.RATES, (0.002,)))
    monkeypatch.setattr(study, 'MOST_RATES', 1)
    out = tmp_path / 'out.json'
    study.main(f'--config {config} --students ELFATT --seeds 1 --out {out}'.split())
    results = json.loads(out.read_text())
    assert 0 <= results['teacher']['AP'] <= 1
    row = results['students']['ELFATT']
    assert {'rates', *load('adaptation').ARMS} == set(row)
    assert set(row['rates']) == {*study.FACTORS, *study.RATES}
    detectors = study.DetectorStudy(config, out)
    student = study.Student(detectors, 'ELFATT', {})
    start = student.start(seed=0).state_dict()
    after = student.align('attention', 0.002, seed=0)
    error = student.error(after)
    assert error < student.error(student.align('attention', 0.0, seed=0))
    weights = after.backbone.state_dict()
    changed = {key for key in start if not start[key].equal(weights[key])}
    assert changed and all('.attn.' in key for key in changed)
    same = study.Student(detectors, study.SAME, {}).start(seed=0).state_dict()
    teacher = detectors.teacher_backbone().state_dict()
    assert all(same[key].equal(x) for key, x in teacher.items())
