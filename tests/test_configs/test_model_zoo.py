"""Tables, metafiles, configs and the papers' figures agree."""

import ast
import re

import pytest
import torch
from loading import ROOT, load_module
from our_configs import ENTRIES, PATHS, build, load

from mmlinattn.commands import get_flops

pytestmark = pytest.mark.modern_full

zoo = load_module('docs/site/model_zoo.py')
PRINTED = zoo.read_printed()
METRICS = dict(top1='top-1', box_ap='box AP', mask_ap='mask AP', miou='mIoU')
# Sizes of images whose FLOPs the metafiles have. The heads of some methods need more
# than maps, and mmdet's Cascade R-CNN counts masks of a thousand boxes.
SHAPES = dict(coco=(800, 1280), ade20k=(512, 2048), cityscapes=(1024, 2048))
NOT_COUNTED = 'cascade|mask2former|dino|sparse'
# Papers that cut or leave out auxiliary heads, and models that are not exactly a
# paper's, in millions.
OFF = {
    r'upernet_(hvittt-b|vssd-t)_.*': 1.5,
    r'softpp-[sml](-nonorm)?_in1k': 2.3,
    r'soft(pp)?-t-linformer_in1k': 2.7,
}


def test_tables_are_those_of_the_metafiles():
    for path, text in zoo.render_all().items():
        written = (ROOT / path).read_text('utf-8')
        assert written == text, 'run python docs/site/model_zoo.py'


def test_times_stand_beside_published_accuracies():
    page = load_module('docs/site/accuracy.py')
    written = page.PAGE.read_text('utf-8')
    assert page.render() == written, 'run python docs/site/accuracy.py'


@pytest.mark.full
def test_attentions_are_compared():
    page = load_module('docs/site/attentions.py')
    written = page.PAGE.read_text('utf-8')
    assert page.render() == written, 'run python docs/site/attentions.py'


def test_printed_figures():
    """A metafile and a config's docstring quote the paper's figures, and no others."""
    for printed in PRINTED.values():
        name = printed['config']
        entry = ENTRIES[name]
        quoted = {METRICS[key]: printed[key] for key in METRICS if key in printed}
        assert quoted, name
        assert zoo.metrics_of(entry) == {key: float(x) for key, x in quoted.items()}
        tree = ast.parse(PATHS[name].read_text())
        text = ' '.join(ast.get_docstring(tree).split())
        for metric, value in quoted.items():
            assert f'{metric} {value}' in text, name
        off = next((x for pattern, x in OFF.items() if re.fullmatch(pattern, name)), 1)
        if 'params' in printed:
            count = entry['Metadata']['Parameters'] / 1e6
            assert count == pytest.approx(float(printed['params']), abs=off), name
    measured = {x for x in ENTRIES if 'imagenette' in x}  # by us
    assert {x for x in ENTRIES if 'Results' in ENTRIES[x]} == measured | set(PRINTED)


def test_start_of_the_zoo(in_folder):
    """The zoo names the weights that the config starts from."""
    for name, cfg, _ in in_folder:
        assert zoo.start_of(PATHS[name]) == cfg.get('pretrained'), name


def kind_of(name):
    """A classifier by itself; method and data of others that are counted."""
    if zoo.CLASSIFIER.search(name):
        return name
    if not re.match(NOT_COUNTED, name):
        return f'{zoo.method_of(name)} {next(x for x in SHAPES if x in name)}'


def marks_of(kind):
    quick = r'(softpp-t|deit-s12-featscale|swin-t-(flatten|agent))_in1k|retinanet coco'
    return () if re.fullmatch(quick, kind or '') else pytest.mark.full


def test_flops(smallest):
    """The metafiles have the counts of get_flops."""
    kind, meta = kind_of(smallest), ENTRIES[smallest]['Metadata']
    if kind is None:
        assert 'FLOPs' not in meta
        return
    cfg = load(smallest)
    shape = SHAPES.get(kind.rpartition(' ')[2]) or get_flops.default_shape(cfg)
    device = 'cpu' if 'roi_head' in cfg.model else 'meta'
    with torch.device(device):
        flops = get_flops.count(build(cfg, device), shape)
    total = flops.total()
    if kind != smallest:
        # the steps that SOFT's paper states, which no device takes at these sizes
        total -= flops.by_kind().get('pseudo_inverse', 0)
    assert meta['FLOPs'] == total
