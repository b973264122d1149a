"""Other libraries find our models by their names."""

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse

import pytest
import torch
import yaml
from loading import ROOT
from mmengine.hub import get_config
from mmengine.runner import load_checkpoint
from our_configs import build, meta_model

import mmlinattn
from mmlinattn import hub
from mmlinattn.weights import convert_back, recognize

INSTALLED = (Path(mmlinattn.__file__).parent / '.mim').is_dir()
INDEX = yaml.safe_load((ROOT / 'model-index.yml').read_text('utf-8'))
METAFILES = [yaml.safe_load((ROOT / x).read_text('utf-8')) for x in INDEX['Import']]
ENTRIES = {entry['Name']: entry for file in METAFILES for entry in file['Models']}
WITH_WEIGHTS = [name for name, entry in ENTRIES.items() if 'Weights' in entry]


@pytest.fixture
def registered(monkeypatch):
    """Registers the package with mmlinattn.register(), for one test."""
    from mmpretrain.apis.model import ModelHub as model_hub

    model_hub._register_mmpretrain_models()
    models = dict(model_hub._models_dict)
    monkeypatch.setattr(model_hub, '_models_dict', models)
    hub.register.cache_clear()
    mmlinattn.register()
    mmlinattn.register()


def test_list_models(registered):
    from mmpretrain import get_model, list_models

    assert list_models('softpp-t_*') == ['softpp-t_in1k']
    assert 'swin-tiny_16xb64_in1k' in list_models('swin')
    with pytest.warns(UserWarning, match='Unable to find pre-defined checkpoint'):
        get_model('softpp-t_in1k', pretrained=True)


def test_get_model_with_weights(registered, tmp_path):
    """It loads the very file of mmpretrain, by the address of the metafile."""
    from mmpretrain import get_model

    def build(name, library, **options):
        arch = dict(embed_dims=8, depths=[2] * 4, num_heads=[1, 2, 4, 4], _delete_=True)
        backbone = dict(type=f'{library}.SwinTransformer', arch=arch)
        head = dict(in_channels=64, num_classes=5)
        return get_model(name, backbone=backbone, head=head, **options)

    theirs = build('swin-small_16xb64_in1k', 'mmpretrain').eval()
    path = tmp_path / 'swin.pth'
    torch.save(dict(state_dict=theirs.state_dict()), path)
    mapping = (ENTRIES['swin-s_in1k']['Weights'], str(path))
    ours = build('swin-s_in1k', 'mmlinattn', pretrained=True, url_mapping=mapping)
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not INSTALLED, reason='mmengine.hub reads installed packages')
def test_hub_of_mmengine(registered):
    cfg = get_config('mmlinattn::antioversmoothing/swin-s_in1k.py', pretrained=True)
    assert cfg.model.backbone.type == 'mmlinattn.SwinTransformer'
    assert cfg.model_path == ENTRIES['swin-s_in1k']['Weights']
    with pytest.raises(AssertionError, match='Cannot find `Weights`'):
        get_config('mmlinattn::soft/softpp-t_in1k.py', pretrained=True)


# ------------------------------------------------------------- public weights
SWIN = 'mmpretrain::swin_transformer/swin'
MASK_RCNN = 'mask-rcnn_swin-t-local_fpn'
THEIRS = {
    'swin-s_in1k': f'{SWIN}-small_16xb64_in1k.py',
    'swin-b-local_in1k': f'{SWIN}-base_16xb64_in1k.py',
    f'{MASK_RCNN}_1x_coco': 'mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_1x_coco.py',
    f'{MASK_RCNN}_ms-crop-3x_coco': (
        'mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_ms-crop-3x_coco.py'
    ),
}


FAMILIES = re.compile(
    'agent|cait|deit|efficientvit|flatten|h?vittt|inline|mlla|ravlt|swin|vssd'
)


def family_of(name):
    return FAMILIES.findall(name)[-1]


# the smallest of each family
QUICK = sorted(WITH_WEIGHTS, key=lambda x: -ENTRIES[x]['Metadata']['Parameters'])
QUICK = {'swin-s_in1k', *{family_of(name): name for name in QUICK}.values()}


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'name',
    [
        pytest.param(x, marks=() if x in QUICK else pytest.mark.full)
        for x in WITH_WEIGHTS
    ],
)
def test_weights_fit(name, tmp_path):
    """A file of the library's model, or of the official code, fits ours, by MMEngine's
    own loader."""
    ours = meta_model(name)
    path = str(tmp_path / 'weights.pth')
    if name in THEIRS:
        # it reads numbers when it is built, which nothing on meta has
        theirs = build(get_config(THEIRS[name])).state_dict()
        state_dict = {key: x.to('meta') for key, x in theirs.items()}
    else:
        family = family_of(name)
        state_dict, _ = convert_back(ours.state_dict(), family)
        assert recognize(state_dict) == family
    place = 'state_dict' if any('backbone.' in x for x in state_dict) else 'model'
    torch.save({place: state_dict}, path)
    load_checkpoint(ours, path, map_location='meta', strict=True)


def test_addresses_are_the_libraries(registered):
    """Another library's file has the same path in that library."""
    for name, config in THEIRS.items():
        library, _, path = config.partition('::')
        folder = Path(find_spec(library).origin).parent / '.mim'
        metafile = folder / 'configs' / Path(path).parent / 'metafile.yml'
        entries = yaml.safe_load(metafile.read_text())['Models']
        paths = {urlparse(entry.get('Weights')).path for entry in entries}
        assert urlparse(ENTRIES[name]['Weights']).path in paths
