"""The machinery of the claims; whether a claim holds is not asserted."""

import json
import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / 'benchmarks'
DOCS = ROOT / 'docs'


@pytest.fixture
def load(monkeypatch):
    """Imports one of the claims' modules, whose package is beside the command."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: import_module(f'claims.{name}')


def part_of(claim, margin=0.0, **options):
    return claim.Part('new less old', lambda x: x['new'] - x['old'], margin, **options)


def runs_of(*effects):
    return {
        str(seed): dict(new=1 + effect, old=1) for seed, effect in enumerate(effects)
    }


@pytest.fixture
def tiny(load, monkeypatch):
    """A registry with one claim, whose measurements are counted and can be stopped."""
    claim, command = load('claim'), load('command')
    measured = []

    def measure(unit, context):
        measured.append((context.seed, unit))
        if measured[-1] == command.STOP:
            raise KeyboardInterrupt
        return dict(value=context.seed + context.settings[unit], sizes={7: 1})

    made = claim.Claim(
        name='tiny',
        title='A tiny claim',
        claim='New is more than old.',
        paper='Table 0.',
        setting='Sums.',
        limits='Anything.',
        settings=dict(new=2, old=1),
        smoke=dict(new=0),
        minutes=1,
        units=lambda settings: ['old', 'new'],
        measure=measure,
        parts=(
            claim.Part('new less old', lambda x: x['new']['value'] - x['old']['value']),
        ),
        tables=lambda runs: [('Values', ['seeds'], [[str(len(runs))]])],
        plot=lambda runs, path: path.write_bytes(b'plot'),
    )
    monkeypatch.setattr(command, 'CLAIMS', {'tiny': made})
    monkeypatch.setattr(command, 'STOP', None, raising=False)
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')  # the command sets it too
    threads = torch.get_num_threads()
    yield measured
    torch.set_num_threads(threads)


def run(load, tmp_path, *options):
    load('command').main(
        ['--work-dir', str(tmp_path / 'work'), '--out', str(tmp_path / 'out'), *options]
    )
    return json.loads((tmp_path / 'out/claims/tiny.json').read_text())


# ------------------------------------------------------------------------- the rule
@pytest.mark.parametrize(
    'effects,margin,verdict',
    [
        ((0.10, 0.11, 0.12), 0.0, 'shown'),
        ((0.10, 0.11, 0.12), 0.2, 'not shown'),
        ((-0.10, -0.11, -0.12), 0.0, 'not shown'),
        ((-0.10, -0.11, -0.12), -0.2, 'shown'),
        ((0.3, -0.2, 0.1), 0.0, "can't be told at this size"),
        ((0.0, 0.0, 0.0), 0.0, 'not shown'),
        ((0.5,), 0.0, "can't be told at this size"),
        ((math.nan, 0.1, 0.1), 0.0, "can't be told at this size"),
    ],
)
def test_rule(load, effects, margin, verdict):
    claim = load('claim')
    assert claim.judge(part_of(claim, margin), runs_of(*effects)).verdict == verdict


def test_interval_is_students(load):
    # of 1, 2, 3: mean 2, standard deviation 1, 2.920 / sqrt(3)
    low, high = load('claim').bounds([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 1.6859, 2 + 1.6859), abs=1e-4)
    stats = pytest.importorskip('scipy.stats')
    for degrees, quantile in enumerate(load('claim').STUDENT, 1):
        assert quantile == pytest.approx(stats.t.ppf(0.95, degrees), abs=6e-4)


def test_doubt_overrules_an_effect(load):
    claim = load('claim')
    part = part_of(claim, doubt=lambda runs, effect: 'saturated')
    finding = claim.judge(part, runs_of(0.1, 0.11, 0.12))
    assert finding.verdict == claim.CANT_TELL and finding.reason == 'saturated'


@pytest.mark.parametrize(
    'score,reason', [(0.98, 'above 0.97'), (0.3, 'below 0.450'), (0.8, None)]
)
def test_scores_that_tell_nothing(load, score, reason):
    runs = {'0': {'a': dict(score=score), 'b': dict(score=0.1), 'c': {}}}
    found = load('claim').scores_doubt('score', 0.45)(runs, 0.1)
    assert found is None if reason is None else reason in found


def test_a_claim_is_as_good_as_its_parts(load):
    claim = load('claim')
    parts = {
        name: claim.judge(part_of(claim), runs_of(*effects))
        for name, effects in dict(
            shown=(0.1, 0.1), not_shown=(-0.1, -0.1), open=(0.1,)
        ).items()
    }
    assert claim.overall([parts['shown']] * 2) == claim.SHOWN
    assert claim.overall([parts['shown'], parts['open']]) == claim.CANT_TELL
    assert claim.overall(list(parts.values())) == claim.NOT_SHOWN


# ------------------------------------------------------------------------ the runner
def test_a_stopped_run_goes_on(load, tmp_path, tiny, monkeypatch):
    command = load('command')
    monkeypatch.setattr(command, 'STOP', (1, 'new'))
    with pytest.raises(KeyboardInterrupt):
        run(load, tmp_path, '--seeds', '2')
    assert not (tmp_path / 'out/claims.md').exists()
    monkeypatch.setattr(command, 'STOP', None)
    tiny.clear()
    record = run(load, tmp_path, '--seeds', '2')
    assert tiny == [(1, 'new')]
    assert record['runs'] == {
        str(seed): dict(
            old=dict(value=seed + 1, sizes={'7': 1}),
            new=dict(value=seed + 2, sizes={'7': 1}),
        )
        for seed in (0, 1)
    }
    page = (tmp_path / 'out/claims.md').read_text()
    assert 'Verdict: shown.' in page and '1 of 1 parts shown' in page
    for ending in ('md', 'png'):
        assert (tmp_path / f'out/claims/tiny.{ending}').is_file()
    tiny.clear()
    (tmp_path / 'out/claims/tiny.txt').write_text('New is twice old.\n')
    run(load, tmp_path, '--seeds', '2')
    assert not tiny  # all is done
    for page in ('claims.md', 'claims/tiny.md'):
        assert 'by hand: New is twice old.\n' in (tmp_path / 'out' / page).read_text()
    run(load, tmp_path, '--seeds', '3')
    assert tiny == [(2, 'old'), (2, 'new')]


def test_results_of_other_settings_are_not_mixed(load, tmp_path, tiny, capsys):
    before = run(load, tmp_path, '--seeds', '2')
    with pytest.raises(SystemExit) as stop:
        run(load, tmp_path, '--seeds', '2', '--smoke')
    assert stop.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert 'smoke and settings' in error and '--overwrite' in error
    assert json.loads((tmp_path / 'out/claims/tiny.json').read_text()) == before
    record = run(load, tmp_path, '--seeds', '2', '--smoke', '--overwrite')
    assert record['smoke'] and record['settings']['new'] == 0
    page = (tmp_path / 'out/claims.md').read_text()
    assert 'Verdict: not shown.' in page and 'the figures mean nothing' in page


def test_what_was_not_run_is_listed(load, tmp_path, tiny):
    load('command').main(['--out', str(tmp_path), '--report'])
    page = (tmp_path / 'claims.md').read_text()
    assert not tiny and not (tmp_path / 'claims').exists()
    assert 'Verdict: not run yet.' in page and '--claim tiny' in page


@pytest.mark.parametrize(
    'options,named',
    [
        (['--seeds', '0'], '--seeds must be 1 to 10, got 0'),
        (['--seeds', '11'], '--seeds must be 1 to 10, got 11'),
        (['--threads', '0'], '--threads'),
        (['--claim', 'huge'], "'huge'"),
        (['--device', 'tpu'], "'tpu'"),
        (['--out', __file__], 'is a file'),
    ],
)
def test_bad_arguments(load, tmp_path, tiny, capsys, options, named):
    with pytest.raises(SystemExit) as stop:
        load('command').main(['--work-dir', str(tmp_path), *options])
    assert stop.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]
    assert not tiny and not list(tmp_path.iterdir())


def test_a_file_that_is_no_record(load, tmp_path, tiny, capsys):
    (tmp_path / 'out/claims').mkdir(parents=True)
    (tmp_path / 'out/claims/tiny.json').write_text('[]')
    with pytest.raises(SystemExit):
        run(load, tmp_path)
    assert 'tiny.json is not a record' in capsys.readouterr().err
    assert (tmp_path / 'out/claims/tiny.json').read_text() == '[]'


# -------------------------------------------------------------------------- the data
def coco_folder(load, root):
    load('data').load_tool('tools/dataset_converters/make_shapes.py').main(
        ['--layout', 'coco', '--out', str(root), '--num-train', '6', '--num-val', '3']
    )
    return root


def test_objects_of_a_coco_folder(load, tmp_path):
    data = load('data')
    root = coco_folder(load, tmp_path / 'coco')
    made = data.Data(tmp_path, root, dict(classification=5), dict(classification=4))
    images, labels = made.tensors('train', 32)
    assert images.shape == (5, 3, 32, 32) and images.dtype == torch.uint8
    content = json.loads(data.annotation_file(root, 'train').read_text())
    used = [x['category_id'] for x in content['annotations']]
    names = list(data.categories(root))
    assert set(names) == set(used) == {37, 38, 84}
    spread = [round(i * (len(used) - 1) / 4) for i in range(5)]
    assert labels.tolist() == [names.index(used[i]) for i in spread]
    # the shape's color is in the middle of its square
    x, y, width, height = content['annotations'][0]['bbox']
    file = root / 'train2017' / content['images'][0]['file_name']
    image = torch.from_numpy(data.np.array(data.Image.open(file))).float()
    middle = image[int(y + height / 2), int(x + width / 2)]
    assert (images[0, :, 16, 16].float() - middle).abs().max() < 60


@pytest.mark.parametrize('missing', ['annotations', 'val2017'])
def test_a_folder_that_is_none(load, tmp_path, missing):
    root = coco_folder(load, tmp_path / 'coco')
    (root / missing).rename(root / 'elsewhere')
    with pytest.raises(FileNotFoundError, match=missing):
        load('data').Data(tmp_path, root, {}, {})


def test_shapes_are_written_once(load, tmp_path):
    made = load('data').Data(tmp_path, None, dict(detection=3), dict(detection=2))
    root = made.prepare('detection')
    times = {x: x.stat().st_mtime_ns for x in root.rglob('*') if x.is_file()}
    assert made.prepare('detection') == root
    assert times == {x: x.stat().st_mtime_ns for x in root.rglob('*') if x.is_file()}
    record = json.loads((root / 'make_shapes.json').read_text())
    assert record['texture'] == 1 and record['occluders'] == 8


# ------------------------------------------------------------------------ everything
def test_the_page_follows_from_the_numbers(load):
    """Verdicts of the documentation are computed, never written by hand."""
    command, report = load('command'), load('report')
    records = {x: command.Record(claim, DOCS) for x, claim in command.CLAIMS.items()}
    entries = [(x.claim, x.content, x.complete(), x.notes()) for x in records.values()]
    assert (DOCS / 'claims.md').read_text('utf-8') == report.page(entries)
    for record in records.values():
        if record.content is None:
            continue
        assert not record.content['smoke']
        assert record.content['settings'] == json.loads(
            json.dumps(record.claim.settings)
        )
        text = report.section(
            record.claim, record.content, record.complete(), record.notes(), level=1
        )
        assert record.file.with_suffix('.md').read_text('utf-8') == text


def test_a_seed_gives_the_same_weights(load, tmp_path):
    claim, data = load('claim'), load('data')
    train = load('classification').trained
    soft = load('experiments.soft_models')

    def weights(folder, seed):
        made = data.Data(folder, None, dict(classification=6), dict(classification=3))
        context = claim.Context(
            soft.SMOKE,
            seed,
            torch.device('cpu'),
            folder,
            made,
            lambda sequence, description='': sequence,
        )
        model = train(soft.backbone(soft.SMOKE), context)
        kept = train(soft.backbone(soft.SMOKE), context)  # from the disk
        states = [x.state_dict() for x in (model, kept)]
        assert all(torch.equal(x, states[1][key]) for key, x in states[0].items())
        assert len(list((folder / 'weights').iterdir())) == 1
        return torch.cat([x.flatten().double() for x in states[0].values()])

    first, again, other = (
        weights(tmp_path / name, seed) for name, seed in (('a', 0), ('b', 0), ('c', 1))
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_powers_of_n(load):
    found = load('experiments.cost').fit({10: 1.0, 20: 4.0, 40: 16.0, 80: 64.0})
    assert [found[key] for key in ('exponent', 'low', 'high')] == pytest.approx([2] * 3)
    noisy = load('experiments.cost').fit({10: 1.0, 20: 5.0, 40: 15.0, 80: 70.0})
    assert noisy['low'] < noisy['exponent'] < noisy['high']


ALL = (
    'backbones',
    'cost',
    'detection',
    'elfatt',
    'inverse',
    'landmarks',
    'oversmoothing',
    'sizes',
)


@pytest.mark.parametrize(
    'names',
    [
        ('detection', 'elfatt', 'inverse', 'oversmoothing'),
        pytest.param(ALL, marks=pytest.mark.full),
        pytest.param(('detection', 'landmarks'), marks=pytest.mark.full, id='own data'),
    ],
)
def test_smoke(load, tmp_path, names, request):
    """Claims from data to page, with models too small to tell anything."""
    pytest.importorskip('mmdet')
    command = [sys.executable, str(BENCHMARKS / 'claims/run.py'), '--smoke']
    options = ['--seeds', '1', '--threads', '1', '--work-dir', str(tmp_path)]
    if 'own data' in request.node.name:
        options += ['--data', str(coco_folder(load, tmp_path / 'coco'))]
    done = subprocess.run(
        [*command, *options, '--claim', *names], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / 'results/claims.md').read_text('utf-8')
    # a single seed tells nothing, and the page says so
    assert page.count("**Verdict: can't be told at this size.**") == len(names)
    assert page.count('**Verdict: not run yet.**') == len(ALL) - len(names)
    for name in names:
        files = [tmp_path / f'results/claims/{name}.{x}' for x in ('json', 'md', 'png')]
        assert all(file.stat().st_size for file in files)
        assert f'claims/{name}.png' in page
