"""The models with public weights, as the metafiles have them."""

from pathlib import Path

import pytest
import yaml
from loading import ROOT

from mmlinattn import public_weights
from mmlinattn.own_config.bases import find_bases

INDEX = yaml.safe_load((ROOT / 'model-index.yml').read_text('utf-8'))
METAFILES = [yaml.safe_load((ROOT / x).read_text('utf-8')) for x in INDEX['Import']]
ENTRIES = [entry for file in METAFILES for entry in file['Models']]
LICENSES = yaml.safe_load((ROOT / public_weights.LICENSES).read_text('utf-8'))
MODELS = public_weights.read_models(ROOT)


def test_lines_say_what_yaml_says():
    """The quick reader of metafiles finds what YAML's finds."""
    expected = [entry for entry in ENTRIES if 'Weights' in entry]
    assert [x.name for x in MODELS] == [x['Name'] for x in expected]
    for model, entry in zip(MODELS, expected):
        meta = entry['Metadata']
        results = [x['Metrics'] for x in entry.get('Results', ())]
        scores = {name: x for metrics in results for name, x in metrics.items()}
        assert model.config == entry['Config'] and (ROOT / model.config).is_file()
        assert model.parameters == meta['Parameters']
        assert model.flops == meta.get('FLOPs', 0)
        assert model.address == entry['Weights']
        assert public_weights.DATA[meta['Training Data']][0] == model.data
        measured = {public_weights.METRICS[name]: x for name, x in scores.items()}
        assert model.scores == measured
        assert model.name == Path(model.config).stem


def test_every_address_has_a_line_of_its_license():
    """Each has exactly one, which may say that there is none."""
    for model in MODELS:
        lines = [x for part, x in LICENSES.items() if part in model.address]
        assert len(lines) == 1 and (model.license or 'none') == lines[0]
    assert {'', 'MIT', 'Apache-2.0'} == {model.license for model in MODELS}
    assert public_weights.license_of('https://somewhere/x.pth', LICENSES) == ''


def test_names_are_those_of_new_config():
    """Method and backbone of a model select its config there."""
    for model in MODELS:
        key = model.method, model.backbone
        if model.data in ('coco', 'ade20k', 'imagenet'):
            assert key in find_bases(model.task)


@pytest.mark.parametrize(
    'name, words',
    [
        ('mask-rcnn_swin-t-local_fpn_ms-crop-3x_coco', 'box AP 46, mask AP 41.6'),
        ('mask-rcnn_vssd-t_fpn_1x_coco', 'mask AP 42.6, no license is stated'),
        ('ravlt-t_in1k', 'ravlt-t_in1k (no license is stated)'),
    ],
)
def test_words(name, words):
    (model,) = [model for model in MODELS if model.name == name]
    assert words in model.describe()
