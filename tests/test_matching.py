"""The task of benchmarks/matching.py, its controls, and its file of results.

Legend: B maps, (H, W) tokens of a map, P pairs of regions.
"""

import json
from importlib import import_module

import pytest
import torch
from loading import ROOT

from mmlinattn.functional import gaussian_kernel

pytestmark = pytest.mark.openmmlab


@pytest.fixture
def load(monkeypatch):
    """Imports one of the benchmarks' modules."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    return import_module


@pytest.fixture
def matching(load):
    return load('matching')


@pytest.fixture
def models(load):
    return load('matching_models')


def maps_of(matching, pairs, side=14, noise=0.0):
    random = torch.Generator().manual_seed(0)
    return matching.draw_maps(64, side, pairs, random, noise)


def look_up(matching, maps):
    """Values of the tokens that show theirs, by the nearest color."""
    colors = maps.tokens[..., : matching.NUM_COLORS].flatten(1, 2)
    distances = torch.cdist(colors, colors)
    hidden = ~maps.shown.flatten(1)
    distances.masked_fill_(hidden.unsqueeze(1), float('inf'))
    return maps.values.flatten(1).gather(1, distances.argmin(-1)).view_as(maps.values)


@pytest.mark.parametrize('pairs, side', [(6, 14), (12, 14), (24, 28), (48, 14)])
def test_one_region_of_each_color_shows_the_value(pairs, side, matching):
    maps = maps_of(matching, pairs, side)
    colors, marks = maps.tokens.split((matching.NUM_COLORS, matching.NUM_VALUES), -1)
    assert torch.equal(marks.sum(-1), maps.shown.float())
    assert torch.equal(marks.argmax(-1)[maps.shown], maps.values[maps.shown])
    for color, values, shown in zip(colors, maps.values, maps.shown):
        _, which = color.flatten(0, 1).unique(dim=0, return_inverse=True)
        regions = torch.stack((which, values.flatten(), shown.flatten()), -1)
        # two regions of each color, with one value, of which one shows it
        kinds = regions.unique(dim=0)
        assert len(kinds) == 2 * pairs
        assert torch.equal(kinds[::2, :2], kinds[1::2, :2])
        assert torch.equal(kinds[:, 2], torch.arange(2 * pairs) % 2)
        # every value as often
        counts = kinds[::2, 1].bincount(minlength=matching.NUM_VALUES)
        assert counts.unique().tolist() == [pairs // matching.NUM_VALUES]
    assert torch.equal(look_up(matching, maps), maps.values)


def test_values_of_a_map_tell_nothing(matching):
    """The most frequent value among shown tokens is right in one of six cases."""
    hits = []
    for pairs in matching.PAIRS:
        maps = maps_of(matching, pairs)
        counts = maps.tokens[..., matching.NUM_COLORS :].sum((1, 2))
        guess = counts.argmax(-1).view(-1, 1, 1).expand_as(maps.values)
        hits.append((guess == maps.values)[~maps.shown].float().mean())
    assert torch.stack(hits).mean() < matching.GUESSED


def test_noise_is_of_colors(matching):
    plain, noisy = (maps_of(matching, 12, noise=x) for x in (0.0, 0.2))
    changes = noisy.tokens - plain.tokens
    assert abs(float(changes[..., : matching.NUM_COLORS].std()) - 0.2) < 0.01
    assert not changes[..., matching.NUM_COLORS :].any()
    assert all(map(torch.equal, plain[1:], noisy[1:]))
    share = (look_up(matching, noisy) == noisy.values)[~noisy.shown].float().mean()
    assert share > 0.98


def test_every_attention_of_the_page_is_there(load, models):
    assert {*load('side_by_side.models').ZOO} < {*models.ATTENTIONS}


def test_every_attention_learns_from_colors(matching, models):
    """Each has a gradient by tokens elsewhere, except for local ones, and takes maps of
    other sizes."""
    channels = matching.NUM_COLORS + matching.NUM_VALUES
    for name in models.ATTENTIONS:
        model = models.Matcher(name, channels, matching.NUM_VALUES)
        tokens = torch.randn(1, 14, 14, channels, requires_grad=True)
        model(tokens)[0, 0, 0].square().sum().backward()
        far = tokens.grad[0, 10:, 10:].abs().sum()
        assert (far > 0) == (name not in ('convolution', 'windows')), name
        out = model.eval()(torch.randn(1, 28, 28, channels))
        assert out.shape == (1, 28, 28, matching.NUM_VALUES), name


def heads(module, x):
    """Queries, keys and values of one image's heads."""
    q, k, v = module.project(x)
    return [module.split_heads(y) for y in (q, k, v)]


def test_equations_of_the_benchmark(models):
    x = torch.randn(1, 12, 16)
    module = models.GaussianRows(16, 2)
    q, _, v = heads(module, x)
    kernel = gaussian_kernel(q / 8**0.25)
    expected = kernel / kernel.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(module.product(q, q, v, (3, 4)), expected)


@pytest.fixture
def run(matching, monkeypatch, tmp_path):
    """Runs the command with trainings whose losses and shares are given."""
    trained = []

    def command(*words, losses=lambda rate: 100 * abs(rate - 0.004), share=1.0):
        def train(name, seed, rate, num_steps, *_):
            trained.append((name, seed, rate, num_steps))
            return name, rate

        def shares(model, _device):
            is_mean = model[0] == 'mean of values'
            return {'14': {'6': 0.17 if is_mean else share}}

        monkeypatch.setattr(matching, 'train', train)
        monkeypatch.setattr(matching, 'test_loss', lambda model, _: losses(model[1]))
        monkeypatch.setattr(matching, 'test', shares)
        trained.clear()
        out = tmp_path / 'results' / 'matching.json'
        with pytest.raises(SystemExit) as stop:
            matching.main([*words, '--out', str(out)])
        results = json.loads(out.read_text()) if out.exists() else {}
        return stop.value.code, trained, results

    return command


NAMES = '--attentions', 'softmax', 'mean of values'


def test_results_are_continued(run):
    code, trained, results = run(*NAMES, '--seeds', '1')
    assert code == 0 and len(trained) == 2 * (3 + 1)
    assert results['attentions']['softmax']['seeds']['0']['rate'] == 0.004
    code, trained, again = run(*NAMES, '--seeds', '2')
    assert code == 0 and {seed for _, seed, *_ in trained} == {1} and len(trained) == 2
    first = again['attentions']['softmax']['seeds'].pop('1')
    again['attentions']['mean of values']['seeds'].pop('1')
    assert first['rate'] == 0.004 and again == results


@pytest.mark.parametrize(
    'best, rates, inside',
    [
        *((0.0041, 3, True), (0.007, 4, True), (0.015, 5, True)),
        *((0.0011, 5, True), (1, 5, False)),
    ],
)
def test_grids_are_extended_at_their_edge(best, rates, inside, run):
    words = *NAMES, '--seeds', '1'
    _, _, results = run(*words, losses=lambda rate: 100 * abs(rate - best))
    row = results['attentions']['softmax']
    assert len(row['rates']) == rates
    chosen = row['seeds']['0']['rate']
    assert row['rates'][str(chosen)] == min(row['rates'].values())
    others = [float(rate) for rate in row['rates'] if float(rate) != chosen]
    assert (min(others) < chosen < max(others)) == inside


def test_of_equal_rates_the_smaller_one_is_taken(run):
    """At 0.016, softmax attention has diverged with one seed of two."""
    losses = {0.001: 0.05, 0.002: 0.003, 0.004: 0.001, 0.008: 0.0009}
    _, _, results = run(*NAMES, '--seeds', '1', losses=losses.__getitem__)
    assert results['attentions']['softmax']['seeds']['0']['rate'] == 0.002


def test_a_diverged_training_is_no_best_rate(run):
    """A loss that is no number is the worst one."""
    losses = {0.002: 1.0, 0.004: 0.5, 0.008: float('nan')}
    _, _, results = run(*NAMES, '--seeds', '1', losses=losses.__getitem__)
    assert results['attentions']['softmax']['seeds']['0']['rate'] == 0.004


def test_controls_that_fail(run, capsys):
    code, *_ = run(*NAMES, '--seeds', '1', share=0.9)
    assert code == 1
    assert 'softmax, seed 0, 6 pairs: 0.9, must be at least' in capsys.readouterr().out


def test_results_of_other_settings_stay(run, capsys):
    _, _, results = run(*NAMES, '--seeds', '1')
    code, trained, again = run(*NAMES, '--steps', '7')
    assert code == 2 and not trained and again == results
    assert 'name another file' in capsys.readouterr().err


def test_a_short_training(matching, monkeypatch):
    """It learns what tokens show, and is tested on all maps."""
    monkeypatch.setattr(matching, 'PAIRS', (6,))
    tests = {'14': (14, 0.0, 196), '28': (28, 0.0, 784)}
    monkeypatch.setattr(matching, 'TESTS', tests)
    rate, device = 0.004, 'cpu'
    first = matching.test_loss(matching.train('softmax', 0, rate, 1, 2, device), device)
    model = matching.train('softmax', 0, rate, 12, 2, device)
    assert matching.test_loss(model, device) < first
    results = matching.test(model, device)
    assert results == matching.test(model, device)
    assert {key: [*shares] for key, shares in results.items()} == {
        '14': ['6'],
        '28': ['6'],
    }
