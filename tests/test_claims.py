"""The machinery of the claims, and what it finds without training."""

import json
import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock, Timeout
from PIL import Image
from scipy import stats

from mmlinattn.analysis import newton_residuals, watch
from mmlinattn.functional import (
    attn_scale,
    feat_scale,
    gaussian_kernel,
    newton_pinv,
    softmax_free_attention,
)
from mmlinattn.models import SoftmaxAttention, SoftmaxFreeAttention
from mmlinattn.registry import build_model

ROOT = Path(__file__).resolve().parents[1]
TINY = dict(
    type='SOFTPlusPlus',
    arch=dict(embed_dims=[8, 8], depths=[1, 1], num_heads=[1, 1]),
    sampling_ratios=[2, 1],
    kernel_sizes=[3, 3],
    sampler='random',
    img_size=32,
    out_indices=[1],
)
THREE = dict(
    TINY,
    arch=dict(embed_dims=[8, 8, 8], depths=[1, 1, 1], num_heads=[1, 1, 1]),
    sampling_ratios=[2, 2, 1],
    kernel_sizes=[3, 3, 3],
    out_indices=[2],
)
RECIPE = dict(
    side=32,
    kept=36,
    batch=4,
    epochs=2,
    lr=1e-3,
    weight_decay=0.05,
    warmup=0.1,
    crop=[0.5, 1.0],
    smoothing=0.1,
)


@pytest.fixture
def load(monkeypatch):
    """Imports one of the claims' modules, whose package is beside the command."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    threads = torch.get_num_threads()
    yield lambda name: import_module(f'claims.{name}')
    torch.set_num_threads(threads)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Photos of two classes, as Imagenette has them."""
    root = tmp_path_factory.mktemp('imagenette')
    for split, num in (('train', 10), ('val', 3)):
        for value, name in enumerate(('n01440764', 'n02102040')):
            (root / split / name).mkdir(parents=True)
            for i in range(num):
                pixels = np.full((40, 60, 3), 200 * value + i, np.uint8)
                Image.fromarray(pixels).save(root / split / name / f'{i}.png')
    return root


def test_photos_are_read_once(load, folder, tmp_path, monkeypatch):
    data, Classes = load('data'), load('tasks').Classes
    pixels, labels = Classes(folder, tmp_path).arrays('train', 20)
    assert pixels.shape == (20, 20, 20, 3) and np.bincount(labels).tolist() == [10, 10]
    assert ((pixels.mean((1, 2, 3)) > 100) == labels).all()
    assert labels.tolist() != sorted(labels.tolist())
    monkeypatch.delattr(data.Photos, 'source')
    again = Classes(folder, tmp_path)
    assert (again.arrays('train', 20)[0] == pixels).all()
    parts = [again.arrays(part, 20)[0] for part in ('tune', 'check')]
    assert [len(part) for part in parts] == [18, 2]
    every = np.concatenate(parts).mean((1, 2, 3))
    assert sorted(every) == sorted(pixels.mean((1, 2, 3)))


@pytest.fixture(scope='module')
def boxes(tmp_path_factory):
    """Photos and boxes, as BCCD has them, and label maps, as CamVid has them."""
    root = tmp_path_factory.mktemp('boxes')
    for i, split in enumerate(('train', 'train', 'train', 'train', 'val')):
        for name in (f'{split}/{i}.png', f'{split}annot/{i}.png', f'voc/{i}.jpg'):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((48, 64, 3), 40 * i, np.uint8)
        Image.fromarray(pixels).save(root / 'voc' / f'{i}.jpg')
        Image.fromarray(pixels).save(root / split / f'{i}.png')
        ids = np.full((48, 64), 11, np.uint8)
        ids[:24], ids[24:, :32] = 0, 1
        Image.fromarray(ids).save(root / f'{split}annot' / f'{i}.png')
        parts = zip(('xmin', 'ymin', 'xmax', 'ymax'), (8, 12, 40, 24 + i))
        box = ''.join(f'<{key}>{x}</{key}>' for key, x in parts)
        text = f'<object><name>RBC</name><bndbox>{box}</bndbox></object>'
        file = root / 'voc' / f'{i}.xml'
        file.write_text(f'<annotation>{text}</annotation>')
        with (root / 'voc' / f'{split}.txt').open('a') as lines:
            lines.write(f'{i}\n')
    return root


class Oracle(torch.nn.Linear):
    """Answers that are right, as far as it is told."""

    def __init__(self, answers):
        super().__init__(1, 1)
        self.answers = answers

    def forward(self, images):
        return torch.nn.functional.one_hot(self.answers, 2).permute(0, 3, 1, 2)

    def predict(self, images, samples, rescale):
        from mmengine.structures import InstanceData

        for sample, rows in zip(samples, self.answers):
            rows = torch.tensor(rows).view(-1, 5)
            sample.pred_instances = InstanceData(
                bboxes=rows[:, :4], labels=rows[:, 4].long(), scores=rows[:, 4] + 0.9
            )
        return samples


def test_boxes(load, boxes, tmp_path):
    """Places follow the photo's size; right boxes have an AP of 1, others less."""
    task = load('tasks').Boxes(boxes / 'voc', tmp_path)
    pixels, rows = task.arrays('val', (32, 48))
    assert pixels.shape == (1, 48, 32, 3) and task.classes == ['RBC']
    assert rows == [[[4.0, 12.0, 20.0, 28.0, 0]]]
    assert task.score(Oracle(rows), 'val', (32, 48))['ap'] == pytest.approx(1)
    half = [[[4.0, 12.0, 20.0, 22.0, 0]]]  # an IoU of 0.625
    found = task.score(Oracle(half), 'val', (32, 48))
    assert found['score'] == pytest.approx(1) and found['ap'] == pytest.approx(0.3)
    assert task.score(Oracle([[]]), 'val', (32, 48))['score'] == 0


def test_pixels(load, boxes, tmp_path):
    task = load('tasks').Pixels(boxes, tmp_path, [11])
    _, labels = task.arrays('val', (32, 24))
    assert labels.shape == (1, 24, 32) and len(task.classes) == 2
    right = torch.from_numpy(labels.astype(int)).clamp(max=1)
    assert task.score(Oracle(right), 'val', (32, 24))['score'] == 1
    # of 32 x 12 and 16 x 12 pixels, those of the second class are wrong
    found = task.score(Oracle(right * 0), 'val', (32, 24))
    assert found['score'] == pytest.approx(2 / 3 / 2)


def test_values_of_photos_are_those_of_the_jackknife(load):
    """Of a mean they are exact; AP without a photo is that of the others."""
    tasks, random = load('tasks'), np.random.default_rng(0)
    for num, groups in ((20, 20), (512, 256)):
        xs = random.random(num)
        found = tasks.by_photo(lambda out, xs=xs: np.delete(xs, out).mean(), num)
        means = xs.reshape(-1, groups).mean(0)
        assert found['values'] == pytest.approx(means, abs=1e-4)

    truth = random.uniform(0, 20, (12, 4, 5))
    truth[..., 2:4] += 20
    truth[..., 4] = random.random((12, 4)) < 0.5
    boxes = truth + random.normal(0, 2, truth.shape) * [1, 1, 1, 1, 0]
    boxes = np.concatenate([boxes, random.random((12, 4, 1))], -1)
    found = tasks.average_precision(truth, boxes, 2)
    others = [np.delete(range(12), i) for i in range(12)]
    others = [tasks.average_precision(truth[x], boxes[x], 2)['score'] for x in others]
    values = found['score'] + 11 * (np.mean(others) - others)
    assert found['values'] == pytest.approx(values, abs=1e-4)
    assert 0.2 < found['ap'] < found['score'] < 0.95


@pytest.mark.parametrize('kind', ['Boxes', 'Pixels'])
def test_dense_models_start_from_classifiers(load, boxes, folder, tmp_path, kind):
    training, tasks = load('training'), load('tasks')
    found = dict(
        imagenette=tasks.Classes(folder, tmp_path),
        dense=getattr(tasks, kind)(
            boxes / 'voc' if kind == 'Boxes' else boxes, tmp_path, [11]
        ),
    )
    start = training.Run('tiny', 'imagenette', THREE, RECIPE)
    recipe = dict(RECIPE, side=[64, 48], kept=[64, 48], batch=2, epochs=0.5, lr=0.0)
    backbone = dict(THREE, out_indices=[0, 1, 2])
    run = training.Run('tiny', 'dense', backbone, recipe, start=start)
    model = training.trained(run, found, tmp_path, 'cpu')
    classifier = training.trained(start, found, tmp_path, 'cpu')
    weights = dict(classifier.backbone.named_parameters())
    for name, weight in model.backbone.named_parameters():
        assert name not in weights or torch.equal(weight, weights[name])
        assert weight.isfinite().all()  # after steps of an optimizer whose rate is 0


def test_crops(load):
    """A crop of the whole is the image or its mirror; none leaves it."""
    ramp = np.arange(16, dtype=np.uint8)
    pixels = np.broadcast_to(ramp[:, None], (8, 16, 16, 3)).copy()
    pixels[..., 1] = ramp
    generator = torch.Generator().manual_seed(0)
    crops = load('data').random_crops(pixels, 16, [0.2, 1.0], generator)
    assert crops.shape == (8, 3, 16, 16) and crops.min() >= 0 and crops.max() <= 15
    assert (crops[:, 0].diff(dim=1) >= -1e-4).all()  # never upside down
    rises = crops[:, 1, 0, -1] > crops[:, 1, 0, 0]
    assert rises.any() and not rises.all()


def test_a_killed_run_goes_on(load, folder, tmp_path, monkeypatch):
    """It has the same weights as another, and what is finished is kept."""
    training = load('training')
    tasks = dict(imagenette=load('tasks').Classes(folder, tmp_path))
    run = training.Run('tiny', 'imagenette', TINY, RECIPE)
    whole = training.trained(run, tasks, tmp_path / 'whole', 'cpu').state_dict()

    monkeypatch.setattr(training, 'SAVE_EVERY', -1)
    entropy, calls = load('tasks').cross_entropy, []

    def killed(*args, **kwargs):
        calls.append(0)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return entropy(*args, **kwargs)

    monkeypatch.setattr(load('tasks'), 'cross_entropy', killed)
    with pytest.raises(KeyboardInterrupt):
        training.trained(run, tasks, tmp_path, 'cpu')
    assert run.result(tmp_path) is None
    model = training.trained(run, tasks, tmp_path, 'cpu')
    assert len(calls) == 6 + 10 - 5
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, whole[key]), key
    result = run.result(tmp_path)
    assert result == dict(run.result(tmp_path / 'whole'), seconds=result['seconds'])
    right = np.unpackbits(np.frombuffer(bytes.fromhex(result['right']), np.uint8))
    assert right[:6].mean() == result['score']
    monkeypatch.delattr(training, 'train')
    training.trained(run, tasks, tmp_path, 'cpu')


def test_processes_share_the_runs(load, folder, tmp_path):
    """What another process trains is left to it."""
    training = load('training')
    run = training.Run('tiny', 'imagenette', TINY, RECIPE)
    run.folder(tmp_path).mkdir(parents=True)
    tasks = dict(imagenette=load('tasks').Classes(folder, tmp_path))
    with FileLock(run.folder(tmp_path) / 'lock'), pytest.raises(Timeout):
        training.trained(run, tasks, tmp_path, 'cpu', timeout=0)
    assert run.has_rate and not run._replace(start=run.with_recipe(lr=None)).has_rate


def test_fine_tuning_starts_from_the_same_function(load, folder, tmp_path):
    training = load('training')
    tasks = dict(imagenette=load('tasks').Classes(folder, tmp_path))
    start = training.Run('tiny', 'imagenette', TINY, RECIPE)
    still = dict(RECIPE, lr=0.0, epochs=0.1)
    scaled = dict(TINY, feat_scale=True, norm_cfg=dict(type='LN'))
    plain = dict(TINY, norm_cfg=dict(type='LN'))
    start = start._replace(backbone=plain)
    run = start._replace(backbone=scaled, recipe=still, start=start, seed=1)
    assert run.key != run._replace(start=None).key
    images = torch.rand(2, 3, 32, 32) * 255
    both = [training.trained(x, tasks, tmp_path, 'cpu') for x in (start, run)]
    torch.testing.assert_close(*(model(images) for model in both))
    other = run._replace(start=start._replace(backbone=TINY), seed=2)
    with pytest.raises(ValueError, match='does not go on'):
        training.trained(other, tasks, tmp_path, 'cpu')


def test_the_best_rate_is_taken(load, tmp_path):
    """Which lies between others."""
    plan = load('plan').Plan(tmp_path)
    runs = list(plan.runs(2))
    of, rates, like = 'imagenette', [], 'SOFT++ bare ridge 0.1'
    assert plan.full(of, like, 0).recipe['lr'] is None
    assert len({run.folder(tmp_path) for run in runs}) == len(runs)
    for scores in ((0.5, 0.4, 0.3), (0.6,), (0.55,)):
        news = [x for x in plan.tuned(of, 'SOFT++ bare')[0] if not x.result(tmp_path)]
        for run, score in zip(news, scores):
            assert plan.tuned(of, 'SOFT++ bare')[1] is None
            file = run.folder(tmp_path) / 'result.json'
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(dict(score=score)))
            rates.append(run.recipe['lr'])
    assert rates == [5e-4, 1e-3, 2e-3, 2.5e-4, 1.25e-4]
    full = plan.full(of, like, 1)
    assert full.recipe['lr'] == 2.5e-4 and full.seed == 1
    assert plan.full(of, 'SOFT bare', 0).recipe['lr'] is None
    file = full.folder(tmp_path) / 'result.json'
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(dict(score=0.7, seconds=9, torch='2')))
    kept = dict(lr=2.5e-4, seeds={'1': dict(score=0.7, seconds=9)}, looks={})
    assert plan.record(2)[of] == {like: kept}


def test_recorded_runs_are_not_trained_again(load, tmp_path):
    """Unless they lack what else is to be measured; their rates are known, too."""
    seeds = {str(seed): dict(score=0.7, seconds=9) for seed in range(2)}
    bare = dict(lr=4e-3, seeds=seeds, looks={'1': {'at 112': dict(score=0.7)}})
    recorded = dict(imagenette={'SOFT++ bare': bare})
    plan = load('plan').Plan(tmp_path, recorded)
    of_bare = [x for x in plan.runs(2, ('imagenette',)) if x.name == 'SOFT++ bare']
    assert [(run.split, plan.has(run)) for run in of_bare] == [
        ('train', False),
        ('train', True),
    ]
    other = plan.full('imagenette', 'SOFT++ bare ridge 0.1', 0)
    assert other.recipe['lr'] == 4e-3 and not plan.has(other)
    assert plan.record(2)['imagenette'] == recorded['imagenette']
    assert plan.record(1)['imagenette']['SOFT++ bare']['seeds'].keys() == {'0'}


def test_every_model_is_built(load):
    """With the same size, but for what a control or a sampler has not."""
    sizes = {}
    for name, backbone in load('models').BACKBONES.items():
        built = load('tasks').Classifier(backbone, 10)
        sizes[name] = sum(x.numel() for x in built.parameters())
        side = 32 if name.startswith(('ViT', 'flat')) else 64
        assert built(torch.zeros(2, 3, side, side)).shape == (2, 10)
    assert sizes['SOFT++'] == sizes['SOFT++ no attention']
    bare = sizes['SOFT++ bare']
    assert bare == sizes['SOFT bare'] == sizes['SOFT++ bare no attention']
    assert sizes['Swin ELFATT'] == sizes['Swin softmax']
    flat = sizes['flat SOFT++']
    assert flat == sizes['flat no attention'] < sizes['flat SOFT++ conv']


def test_branches_are_those_of_the_blocks(load, folder, tmp_path):
    """The norm of attention over that of tokens, block by block."""
    task = load('tasks').Classes(folder, tmp_path)
    torch.manual_seed(0)
    model = task.build(load('training').Run('tiny', 'imagenette', TINY, RECIPE)).eval()
    found = load('looks').branches(model, task, 32)
    assert len(found) == 2 and min(found) > 0
    with torch.no_grad():
        for stage in model.backbone.stages:
            stage.blocks[0].attn.proj.weight *= 2
            stage.blocks[0].attn.proj.bias *= 2
    more = load('looks').branches(model, task, 32)
    assert more[0] == pytest.approx(2 * found[0], rel=1e-4)


def test_scaled_attentions(load):
    """Local filters are not scaled, and all is as before when it ends."""
    attention = SoftmaxFreeAttention(8, 2, sampling_ratio=2, kernel_size=3).eval()
    x, hw_shape = torch.rand(1, 16, 8), (4, 4)
    with torch.no_grad():
        whole = attention(x, hw_shape)
        with load('looks').scaled([attention], 0.0):
            local = attention(x, hw_shape)
        with load('looks').scaled([attention], 3.0):
            more = attention(x, hw_shape)
        torch.testing.assert_close(more - local, 3 * (whole - local))
        assert not torch.allclose(whole, local)
        assert torch.equal(attention(x, hw_shape), whole)


def test_depths_are_those_of_the_tokens(load, folder, tmp_path):
    """After every block, with and without its parts; the last ones are the scores."""
    looks, vit = load('looks'), load('models').vit(3)
    task = load('tasks').Classes(folder, tmp_path)
    run = load('training').Run('vit', 'cifar10', vit, RECIPE)
    torch.manual_seed(0)
    model, tokens = task.build(run).eval(), []
    with watch(model.backbone, on_block=lambda x: tokens.append(x.tokens)):
        model(load('tasks').as_tensor(task.arrays('val', 32)[0]))
    found = looks.depths(model, task, 32)
    for name, measure in looks.MEASURES.items():
        curve = [measure(x).mean().item() for x in tokens]
        assert found[name] == dict(score=curve[-1], curve=pytest.approx(curve))
    assert len({x['score'] for name, x in found.items() if 'high' in name}) == 4
    for block in model.backbone.blocks:  # an attention that changes nothing
        torch.nn.init.zeros_(block.attn.proj.weight)
        torch.nn.init.constant_(block.attn.proj.bias, 1e-3)
    found = looks.depths(model, task, 32)
    alone = found['similarity, attention alone']['score']
    assert alone == pytest.approx(1, abs=1e-4)
    assert found['high frequencies, attention alone']['score'] < 1e-3
    assert found['similarity, no FFN']['score'] < 0.99


def test_controls_have_no_attention(load):
    models = load('models')
    for cls in (models.NoSoftmaxAttention, models.NoSoftmaxFreeAttention):
        attention = cls(8, 2)
        q, k, v = torch.rand(3, 1, 4, 8)
        assert not attention.attend(q, k, v, (2, 2)).any()
    # a flat model without it knows each patch alone
    torch.manual_seed(0)
    model = build_model(models.BACKBONES['flat no attention']).eval()
    images = torch.rand(1, 3, 32, 32).repeat(2, 1, 1, 1)
    images[1, :, :4, :4] = 0
    (maps,) = model(images)
    same = (maps[0] == maps[1]).all(0)
    assert not same[0, 0] and same.sum() == 63


def test_rank_one_is_attention_of_tokens_that_are_alike(load):
    models = load('models')
    options = dict(embed_dims=8, num_heads=2, sampling_ratio=2, sampler='pool')
    torch.manual_seed(0)
    attention = SoftmaxFreeAttention(**options).double()
    q, v = torch.rand(2, 1, 24, 8).double()
    alike = q[:, :1].expand_as(q)
    control = models.RankOneAttention(**options).attend(alike, alike, v, (4, 6))
    found = attention.attend(alike, alike, v, (4, 6))
    torch.testing.assert_close(found, control)
    torch.testing.assert_close(control, 4 * v.mean(1, keepdim=True).expand_as(v))
    control = models.MeanAttention(8, 2).attend(alike, alike, v, (4, 6))
    found = SoftmaxAttention(8, 2).attend(alike, alike, v, (4, 6))
    torch.testing.assert_close(found, control)


@pytest.mark.parametrize('soft', [False, True])
def test_inverses_are_those_of_the_model(load, soft):
    """Newton's steps by their filter are the steps themselves."""
    exact = load('exact')
    a = gaussian_kernel(exact.made_up_tokens(5, 0.5)[0, 0])
    _, vectors, found, alpha = exact.inverses(a, soft)
    ridged = a + 0.01 * soft * torch.eye(25).double()
    steps = newton_pinv(ridged, 20, alpha=alpha.view(1, 1), solver='newton')
    torch.testing.assert_close(vectors * found[exact.NEWTON] @ vectors.mT, steps)
    inverse = vectors * found[exact.EXACT] @ vectors.mT
    torch.testing.assert_close(inverse, torch.linalg.inv(ridged))


def test_residuals_have_a_bound_that_does_not_know_the_matrix(load):
    exact = load('exact')
    for spread in (0.05, 0.3, 2.0):
        a = gaussian_kernel(exact.made_up_tokens(9, spread)[0, 0])
        eigenvalues, _, _, alpha = exact.inverses(a)
        residual = newton_residuals(eigenvalues, alpha, 20)[-1]
        bound = 1 / math.sqrt(2 * math.e * alpha * 2**20)
        assert residual <= bound / eigenvalues[-1]


def test_norms_are_those_of_the_attention(load):
    """By the landmarks' eigenvalues, and from the attention's output; with equal tokens
    N and N / m."""
    exact = load('exact')
    q = exact.made_up_tokens(8, 0.5)
    landmarks = exact.pool_map(q, (8, 8), 4)
    norms = exact.spectral_norms(q[0, 0], landmarks[0, 0])
    values = torch.eye(64).double()[None, None]
    for name, normalize in (('SOFT', False), ('SOFT++', True)):
        matrix = softmax_free_attention(
            q, landmarks, values, normalize, ridge=0.01 * (not normalize)
        )
        norm = torch.linalg.matrix_norm(matrix[0, 0], 2).item()
        assert norms[name] == pytest.approx(norm, rel=1e-6)
    equal = exact.spectral_norms(torch.ones(36, 2).double(), torch.ones(9, 2).double())
    assert equal[f'SOFT++, {exact.EXACT}'] == pytest.approx(4)
    assert equal['SOFT'] == pytest.approx(36, rel=1e-2)
    assert equal['softmax'] == pytest.approx(1)


def test_rates_of_high_frequencies_have_bounds(load):
    """The norm is reached, the logits bound it, and AttnScale and FeatScale multiply it
    exactly."""
    exact = load('exact')
    logits = 2 * torch.rand(3, 12, 12).double() - 1
    attn, x = logits.softmax(-1), torch.rand(3, 12, 5).double()

    def rate(out):
        return exact.high(out).norm(dim=(1, 2)) / exact.high(x).norm(dim=(1, 2))

    gain = exact.gain(attn)
    assert (rate(attn @ x) <= gain).all()
    means = torch.full((12, 12), 1 / 12).double()
    worst = torch.linalg.svd(attn - means @ attn)[2][:, 0]  # its mean is 0
    reached = exact.high(attn @ worst[..., None]).norm(dim=(1, 2))
    torch.testing.assert_close(reached, gain)
    bound = exact.logit_bound(logits.abs().amax((1, 2)), 12)
    assert (gain <= bound).all() and (bound >= 1).all()
    one = torch.ones(12, 12).double()
    one[:, 1:] = -1  # the largest sum of a column that such logits can have
    root = one.softmax(-1).sum(0).max().sqrt()
    torch.testing.assert_close(exact.logit_bound(one.max(), 12), root)
    eye = torch.eye(12).double().expand(1, 3, -1, -1)
    scaled = attn_scale(attn[None], eye, torch.full((3,), 0.7))[0]
    torch.testing.assert_close(exact.gain(scaled), 1.7 * gain)
    torch.testing.assert_close(exact.high(scaled @ x), 1.7 * exact.high(attn @ x))
    t = torch.tensor([0.5, 0.7, -0.2, 0.0, 0.1])
    out = feat_scale(attn @ x, torch.zeros(5), t)
    assert (rate(out) <= 1.7 * rate(attn @ x)).all()


def test_matrices_are_those_of_the_attentions(load):
    exact = load('exact')
    found, logits = exact.matrices()
    torch.testing.assert_close(found['softmax'], logits.softmax(-1))
    for name in (
        'softmax',
        'efficient',
        'ELFATT',
        'AttnScale ω = 2',
        'FeatScale t = 1',
    ):
        torch.testing.assert_close(found[name].sum(-1), torch.ones(2, 196).double())
    numbers = exact.frequencies()
    far = {row['attention']: row['distances'] for row in numbers['rows']}
    assert far['softmax'] == [0, 0]
    assert far['ELFATT'][0] == far['efficient'][0] > far['Nyströmformer'][0]
    assert far['AttnScale ω = 1'] == pytest.approx(numbers['mean_distance'])


def outcomes(*shares, photos=400, seed=0):
    """Of a model's seeds, whether photos are classified right."""
    random = np.random.default_rng(seed)
    return {i: random.random(photos) < share for i, share in enumerate(shares)}


@pytest.mark.parametrize(
    'new, options, verdict',
    [
        ((0.9, 0.91, 0.9), {}, 'supported'),
        ((0.7, 0.71, 0.7), {}, 'inconclusive'),
        ((0.3, 0.31, 0.3), dict(gate=0.0), 'contradicted'),
        ((0.3, 0.31, 0.3), {}, 'not tested'),
        ((0.9, 0.9), {}, 'not tested'),
        ((0.9, 0.4, 0.95), {}, 'inconclusive'),
        ((0.7, 0.71, 0.7), dict(margin=0.2, equal=True), 'supported'),
        ((0.9, 0.91, 0.9), dict(margin=0.1, equal=True), 'contradicted'),
        ((0.7, 0.71, 0.7), dict(margin=0.01, equal=True), 'inconclusive'),
    ],
)
def test_rule(load, new, options, verdict):
    claim = load('claim')
    right = dict(
        imagenette=dict(new=outcomes(*new), old=outcomes(0.7, 0.7, 0.7, seed=1))
    )
    part = claim.Part('new less old', ('new', 'old'), **options)
    (found,) = claim.judge([part], right)
    assert found.verdict == verdict
    if found.interval:
        assert found.interval[0] < found.effect < found.interval[1]
        assert found.seen > 0


@pytest.mark.parametrize('seeds, photos', [(0.05, 0.0), (0.0, 0.5), (0.05, 0.5)])
@pytest.mark.parametrize('paired', [False, True])
def test_errors_are_as_rare_as_they_should_be(load, seeds, photos, paired):
    """Without an effect, one of three seeds is said to be there 5 times of 100, and 1
    of 1000; with noise of seeds, of photos, and of both."""
    random, chances = np.random.default_rng(0), []
    for _ in range(2000):
        skill = seeds * random.normal(size=(2, 3, 1)) + 0.3 * random.normal(size=100)
        scores = skill + photos * random.normal(size=(2, 1, 100))
        a, b = scores + 0.2 * random.normal(size=(2, 3, 100))
        error, freedom = load('claim').error_of_effect(a, b, paired)
        chances.append(stats.t.sf((a - b).mean() / error, freedom))
    found, rare = (np.mean(np.array(chances) < level) for level in (0.05, 0.001))
    assert 0.015 < found < 0.065 and rare < 0.004


def test_parts_are_of_models_that_are_trained(load, tmp_path):
    """Or of what is measured of them: a typo would never be tested."""
    looks = load('looks')
    measured = {'', ' maps', ' power of N', f' {looks.HIGH}', f' {looks.ALIKE}'}
    measured |= {f' at {side}' for side in looks.SIZES}
    measured |= {f' tested with {x} landmarks' for x in looks.LANDMARKS}
    measured |= {f'{x}, {change}' for x in measured for change in ('scaled', 'off')}
    measured |= {f' tested with ridge {x:g}' for x in looks.RIDGES}
    measured |= {' tested as rank one'}
    trained = {(run.data, run.name) for run in load('plan').Plan(tmp_path).runs(1)}
    known = {(data, name + x) for data, name in trained for x in measured}
    parts = [part for claim in load('trained').CLAIMS.values() for part in claim]
    assert {(x.data, name) for x in parts for name in x.models} <= known
    by_text = {part.text: part for part in parts}
    equal = by_text['bccd: Swin ELFATT equals Swin softmax']
    assert equal.margin == 0.02 and equal.equal and not equal.paired
    less = by_text['Swin ELFATT less Swin efficient']
    assert less.margin == 0 and less.gate == 0.6 and not less.equal


def test_many_parts_need_more(load):
    """Holm's correction: what stands alone does not stand among others."""
    claim = load('claim')
    models = {f'x{i}': outcomes(0.7, 0.7, 0.7, seed=i) for i in range(1, 7)}
    parts = [claim.Part(x, (x, 'x1')) for x in ('new', *models) if x != 'x1']
    models['new'] = outcomes(0.78, 0.77, 0.78)
    for some, verdict in ((parts[:1], 'supported'), (parts, 'inconclusive')):
        found = claim.judge(some, dict(imagenette=models))
        assert {x.verdict for x in found} == {verdict}


def test_the_page_follows_from_the_numbers(load):
    """Verdicts of the documentation are computed, never written by hand."""
    docs, report = ROOT / 'docs', load('report')
    assert all(load('command').numbers(docs, name) for name in report.FINDINGS)
    runs = json.loads((docs / 'claims' / 'runs.json').read_text('utf-8'))
    page = (docs / 'claims.md').read_text('utf-8')
    verdicts = report.judged(runs)
    assert report.page(page, verdicts) == page
    assert page.count('\n') <= 80
    assert f'over all {sum(map(len, verdicts.values()))} parts' in page
    by_text = {x.part.text: x.verdict for of in verdicts.values() for x in of}
    for part, control in report.SHOWN:
        assert by_text[part] == 'supported'
        assert by_text[control] != 'not tested'
    figures = {*re.findall(r'\(claims/(\w+)\.png\)', page)}
    assert figures and figures <= {x.stem for x in (docs / 'claims').glob('*.png')}


def test_models_of_a_part_have_one_rate(load):
    """Trained at different rates, models would not be compared, but rates."""
    runs = json.loads((ROOT / 'docs/claims/runs.json').read_text('utf-8'))
    parts = [part for claim in load('trained').CLAIMS.values() for part in claim]
    for part in parts:
        # a model, or a measure of it
        models = [
            max((x for x in runs[part.data] if name.startswith(x)), key=len)
            for name in part.models
        ]
        assert len({runs[part.data][x]['lr'] for x in models}) == 1, part.text


def test_maps_show_where_a_class_is_seen(load, folder, tmp_path):
    """The model classifies afterwards as it did before."""
    pytest.importorskip('pytorch_grad_cam')
    tasks, models = load('tasks'), load('models')
    task = tasks.Classes(folder, tmp_path)
    torch.manual_seed(0)
    model = tasks.Classifier(models.swin(models.SOFTMAX), 2).eval()
    before = task.score(model, 'val', 32)
    maps = np.array(load('looks').explained(model, task, 32))
    assert maps.shape == (6, 4) and maps.min() >= 0 and maps.std() > 0
    assert task.score(model, 'val', 32) == before


def test_maps_are_compared_with_those_of_softmax(load):
    """With another seed's; a map without anything is like none."""
    maps = {
        'Swin softmax': [[[0.1, 0.2, 0.6]], [[0.2, 0.4, 1.2]], [[0.2, 0.1, -0.3]]],
        'Swin ELFATT': [[[0, 0, 0]], [[0.5, 0.7, 1.5]]],
    }
    models = {
        name: dict(seeds={}, looks={str(i): dict(maps=x) for i, x in enumerate(of)})
        for name, of in maps.items()
    }
    found = load('report').outcomes(dict(imagenette=models))['imagenette']
    assert [*found['Swin softmax maps'].values()] == pytest.approx([1, -1, -1])
    assert [*found['Swin ELFATT maps'].values()] == pytest.approx([0, -1])


def test_power_of_n_is_that_of_stages_with_landmarks(load):
    looks = {
        f'at {side}': dict(branches=[side**2, 3 * side**2, side, 7, 7, 7], score=0.5)
        for side in (112, 256)
    }
    models = dict(SOFT=dict(seeds={}, looks={'3': looks}))
    found = load('report').outcomes(dict(imagenette=models))['imagenette']
    assert found['SOFT power of N'][3] == pytest.approx([2.5 / 3])
    assert found['SOFT at 256'][3] == [0.5]


def test_figures_are_drawn(load, tmp_path):
    found = {name: load('command').numbers(ROOT / 'docs', name) for name in ('norms',)}
    report = load('report')
    report.draw({**dict.fromkeys(report.FINDINGS), **found}, tmp_path)
    assert [path.name for path in tmp_path.glob('*.png')] == ['norms.png']


@pytest.mark.parametrize(
    'options, named',
    [
        (['train', '--data', 'photos'], 'must be one of imagenette=DIR, cifar10=DIR'),
        (['train', '--data', 'cifar10=/nowhere'], '--data /nowhere: there is no such'),
        (['guess'], "invalid choice: 'guess'"),
    ],
)
def test_bad_input(load, tmp_path, capsys, options, named):
    main = load('command').main
    capsys.readouterr()  # what libraries print when they are imported
    with pytest.raises(SystemExit) as stop:
        main([*options, '--work-dir', str(tmp_path)])
    line = capsys.readouterr().err
    assert stop.value.code == 2 and named in line and line.count('\n') == 1


@pytest.mark.parametrize('kind', ['pyramid', 'ViT'])
def test_exported_models_are_the_trained_ones(load, tmp_path, monkeypatch, kind):
    """The same logits, from a config and a checkpoint as the tools read them."""
    monkeypatch.syspath_prepend(str(ROOT / 'tools'))
    from mmlinattn_tools.looking import Subject

    tasks, Run = load('tasks'), load('training').Run
    backbone = TINY if kind == 'pyramid' else load('models').vit(2)
    run = Run('Tiny++, a', 'imagenette', backbone, RECIPE)
    model = tasks.Classifier(run.backbone, 2).eval()
    for file, content in (
        (run.folder(tmp_path) / 'result.json', dict(files='key')),
        (tmp_path / 'arrays/key/classes.json', ['n01440764', 'cats, dogs']),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(content))
    torch.save(model.state_dict(), run.folder(tmp_path) / 'weights.pth')
    config = load('export').export(run, tmp_path, tmp_path)
    assert config.name == 'tinypp-a.py'
    photo = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    Image.fromarray(photo).save(tmp_path / 'photo.png')
    subject = Subject(str(config), str(config.with_suffix('.pth')), '', whole=True)
    picture = subject.read(tmp_path / 'photo.png')
    assert picture.pixels.shape == (32, 32, 3) and subject.class_name(0) == 'tench'
    assert subject.class_name(1) == 'cats, dogs'
    with torch.no_grad():
        logits = model(tasks.as_tensor(picture.pixels[None]))
        torch.testing.assert_close(subject.model(picture.inputs), logits)


@pytest.mark.full
def test_from_folders_to_the_page(load, folder, tmp_path, monkeypatch):
    """With trainings of a step."""
    plan = load('plan')
    for name in plan.RECIPES:
        short = dict(plan.RECIPES[name], batch=2, epochs=0.01)
        monkeypatch.setitem(plan.RECIPES, name, short)
        monkeypatch.setitem(plan.SHORT, name, 0.01)
    command = ['train', '--seeds', '1', '--work-dir', str(tmp_path)]
    command += ['--data', f'imagenette={folder}', f'cifar10={folder}']
    load('command').main(command)
    page = (tmp_path / 'results' / 'claims.md').read_text('utf-8')
    assert '| SOFT++ bare at 256 less SOFT++ bare at 112 | - | not tested |' in page
    runs = json.loads((tmp_path / 'results' / 'claims' / 'runs.json').read_text())
    done = [*plan.Plan(tmp_path).runs(1, ('imagenette', 'cifar10'))]
    assert len(done) > 40 and all(run.result(tmp_path) for run in done)
    names = {*load('models').BACKBONES}
    assert names <= {*runs['imagenette'], *runs['cifar10']}
    looks = runs['cifar10']['ViT-24 AttnScale']['looks']
    assert len(looks['1']['similarity']['curve']) == 24
