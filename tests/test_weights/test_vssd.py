"""VSSD beside the official code."""

import pytest
import torch
import vssd_fixture as vssd

from mmlinattn.models import VSSD
from mmlinattn.registry import MODELS
from mmlinattn.weights import convert
from mmlinattn.weights.rows import inside


@pytest.mark.parametrize('name', vssd.NAMES)
@torch.no_grad()
def test_outputs(relative_error, name):
    """Logits of a classifier, and the maps of an odd image."""
    converted, expected = convert(vssd.weights(name), 'vssd'), vssd.outputs(name)
    options = dict(out_type='avg_featmap') if 'logits' in expected else {}
    model = MODELS.build({**vssd.OURS[name], **options}).eval()
    model.load_state_dict(inside(converted, 'backbone.'))
    outs = model(vssd.image(name))
    results = {f'map{i}': out for i, out in enumerate(outs)}
    if options:
        head = inside(converted, 'head.fc.')
        results = dict(logits=outs[0] @ head['weight'].mT + head['bias'])
    assert results.keys() == expected.keys()
    for key, result in results.items():
        assert relative_error(result, expected[key]) < 1e-5, key


@pytest.mark.modern_full
def test_parameters():
    """They equal those of the paper's classifiers."""
    for size, number in vssd.outputs('parameters').items():
        with torch.device('meta'):
            model = VSSD(size, out_type='avg_featmap')
        head = 1000 * (model.feature_channels[-1] + 1)
        assert sum(x.numel() for x in model.parameters()) + head == number
    assert {*vssd.outputs('parameters')} == {*VSSD.arch_zoo}
