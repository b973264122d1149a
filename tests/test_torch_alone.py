"""Models, weights, timm's names, detectors of torchvision and exports in processes that
refuse to import the libraries of OpenMMLab."""

import hashlib
import json

import numpy as np
import pytest
import torch
from loading import BLOCK, ROOT
from miniature_backbones import CASES
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer

from mmlinattn.parts import build_model

BLOCKED = ('mmcv', 'mmdet', 'mmengine', 'mmpretrain', 'mmrotate', 'mmseg', 'mim')
FOLDERS = [str(ROOT / folder) for folder in ('tests', 'tests/data/official')]
START = f"""{BLOCK.format(blocked=BLOCKED)}
sys.path[:0] = {FOLDERS}
import torch

torch.set_num_threads(1)
"""
END = f"""
assert not {set(BLOCKED)} & {{name.partition('.')[0] for name in sys.modules}}
"""


@pytest.fixture
def alone(run_python):
    """Runs code in such a process."""
    return lambda code: run_python(START + code + END)


def digest(model):
    """A number for all initial values of a model."""
    checksum = hashlib.sha256()
    for key, x in model.state_dict().items():
        checksum.update(key.encode() + x.numpy().tobytes())
    return checksum.hexdigest()


BACKBONES = """
import hashlib, json
import miniature_backbones as battery

digests = {}
for name, cfg in battery.CASES.items():
    torch.manual_seed(0)
    model = battery.build_model(cfg)
    model.init_weights()
    assert model.is_init and not hasattr(model, '_params_init_info')
    entries = hashlib.sha256()
    for key, x in model.state_dict().items():
        entries.update(key.encode() + x.numpy().tobytes())
    digests[name] = entries.hexdigest()
    outs = model.train()(battery.images())
    battery.random_loss(outs).backward()
    learned = [x for x in model.parameters() if x.requires_grad]
    assert all(x.grad.isfinite().all() for x in learned), name
print(json.dumps(digests))
"""


def test_backbones(alone):
    """Each runs forward and backward, from the initial values that MMEngine draws."""
    digests = json.loads(alone(BACKBONES).splitlines()[-1])
    assert digests.keys() == CASES.keys()
    for name, cfg in CASES.items():
        torch.manual_seed(0)
        model = build_model(cfg)
        model.init_weights()
        assert digest(model) == digests[name], name


PARTS = """
from mmlinattn.models import (
    ConvPoolingNeck, MultiheadSelfAttention, SimpleFeaturePyramid, SwinTransformer,
)
from mmlinattn.parts import build_model, register

arch = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
stem = dict(type='ConvStem', act_cfg=dict(type='Mish'))
pyramid = dict(type='PyramidTransformer', arch=arch, stem=stem)
for norm, kind in (
    (dict(type='SyncBN', requires_grad=False), 'SyncBatchNorm'),
    (dict(type='GN', num_groups=2), 'GroupNorm'),
    (dict(type='InstanceNorm2d', affine=True), 'InstanceNorm2d'),
    (dict(type='LN'), 'LayerNorm2d'),
):
    model = build_model(dict(pyramid, norm_cfg=norm))
    layers = model.stages[0].embedding[0]
    assert [type(x).__name__ for x in layers[1:]] == [kind, 'Mish']
    assert layers[1].weight.requires_grad == norm.get('requires_grad', True)


@register
class Mine(torch.nn.Module):
    def __init__(self, embed_dims, num_heads, attn_scale):
        super().__init__()

    def forward(self, x, hw_shape):
        return x


build_model(dict(pyramid, attention='Mine'))(torch.rand(1, 3, 64, 64))
for part in (dict(attention='Mein'), dict(norm_cfg=dict(type='BNN'))):
    try:
        build_model({**pyramid, **part})
    except (KeyError, ValueError) as error:
        assert 'Mein' in str(error) or 'BNN is not in the' in str(error)
    else:
        raise AssertionError(part)
for neck in (SimpleFeaturePyramid(16, 8), ConvPoolingNeck(16, 8)):
    neck.init_weights()
    neck([torch.rand(1, 16, 4, 4)])
model = SwinTransformer('tiny', init_cfg=dict(type='Kaiming', layer='Conv2d'))
try:
    model.init_weights()
except ValueError as error:
    assert "'Kaiming'" in str(error) and "pip install 'mmlinattn[mm]'" in str(error)
layer = MultiheadSelfAttention(8, 2, batch_first=True)
x = torch.rand(2, 5, 8)
assert layer(x, x, x)[0].shape == x.shape
"""


def test_parts_by_name(alone):
    """Norms, activations, an attention of one's own, and what a wrong name says."""
    alone(PARTS)


OFFICIAL = """
import miniature_backbones as battery
import recording
from mmlinattn.parts import build_model
from mmlinattn.weights import convert, convert_back, read_checkpoint, recognize
from mmlinattn.utils.names import inside

FILES = {
    name: (cfg, recording.by_name()[name].weights(name))
    for name, cfg in recording.ours().items()
}
for name, family in (
    ('SOFTPlusPlus', 'soft'),
    ('SwinTransformer', 'swin'),
    ('CSWinTransformer', 'cswin'),
    ('VisionTransformer', 'deit'),
    ('MLLA', 'mlla'),
    ('EfficientViT', 'efficientvit'),
):
    entries = battery.build(name, out_indices=(3,)).state_dict()
    entries = {f'backbone.{key}': x for key, x in entries.items()}
    FILES[name] = battery.CASES[name], convert_back(entries, family)[0]
assert len(FILES) > 8
for name, (cfg, weights) in FILES.items():
    torch.save(dict(model=weights), 'official.pth')
    pretrained = dict(type='Pretrained', checkpoint='official.pth')
    model = build_model(dict(cfg, init_cfg=pretrained))
    model.init_weights()
    ours = inside(convert(weights, recognize(weights)), 'backbone.')
    state_dict = model.state_dict()
    common = ours.keys() & state_dict.keys()
    assert all(ours[key].equal(state_dict[key]) for key in common), name
    assert len(common) > 0.8 * len(state_dict), name

loaded = read_checkpoint('trained.pth')
assert loaded['meta']['cfg']['type'] == 'X' and loaded['state_dict']['a'].shape == (2,)
try:
    read_checkpoint('open-mmlab://resnet50_v1c', 'pretrained')
except ValueError as error:
    assert 'give a path' in str(error) and 'mmengine' in str(error)
"""


def test_weights_by_path(alone, tmp_path):
    """Official files, and one that MMEngine wrote, with its own classes in it."""
    scalars = HistoryBuffer([0.5, 0.25], [1, 1])
    hub = dict(log_scalars={'train/loss': scalars}, runtime_info={})
    meta = dict(cfg=ConfigDict(type='X'), seed=np.float64(0.5))
    content = dict(meta=meta, message_hub=hub, state_dict=dict(a=torch.ones(2)))
    torch.save(content, tmp_path / 'trained.pth')
    alone(OFFICIAL)


TIMM = """
import timm
import mmlinattn.timm
from timm_miniatures import small

NAMES = ['softpp_tiny', 'softpp_tiny_linear', 'soft_tiny_norm', 'swin_tiny_agent']
NAMES += ['cswin_tiny_local', 'vittt_tiny', 'hvittt_tiny', 'deit_s12_featscale']
NAMES += ['cait_xxs24', 'mlla_tiny', 'vssd_micro', 'ravlt_tiny', 'mavit_tiny']
assert len(timm.list_models('softpp_*')) > 3
for name in NAMES:
    def create(**options):
        return timm.create_model(name, **small(name), **options)

    x = torch.rand(1, 3, 65, 97)
    features = create(features_only=True)
    assert len(features(x)) == len(features.feature_info) == 4
    model = create(num_classes=7).eval()
    assert model(x).shape == (1, 7)
    for changed in (model, create().half(), create(device='meta')):
        changed.reset_classifier(5)
        like, fc = next(changed.backbone.parameters()), changed.get_classifier()
        assert (fc.weight.dtype, fc.weight.device) == (like.dtype, like.device)
        assert fc.weight.shape[0] == 5
    assert model(x).shape == (1, 5)
    model = create(dtype=torch.bfloat16, device='cpu')
    assert next(model.parameters()).dtype == torch.bfloat16
"""


def test_timm(alone):
    alone(TIMM)


DETECTOR = """
from loading import load_module
from timm_miniatures import PYRAMID
from torchvision.models.detection import FasterRCNN

module = load_module('examples/torchvision_detectors.py')
backbone = module.Backbone('softpp_tiny_linear', arch=PYRAMID)
detector = FasterRCNN(backbone, num_classes=4, min_size=128)
photo, box = torch.rand(3, 100, 150), torch.tensor([[20.0, 30, 80, 90]])
target = dict(boxes=box, labels=torch.tensor([1]))
sum(detector([photo, photo], [target, target]).values()).backward()
assert {*detector.eval()([photo])[0]} == {'boxes', 'labels', 'scores'}
"""


def test_detector_of_torchvision(alone):
    alone(DETECTOR)


FILE = """
from pathlib import Path
import miniature_backbones as battery
from mmlinattn.analysis import count_flops, hc_proportion, watch
from mmlinattn.deployment import ExportedModel, export, parity
from mmlinattn.functional import softmax_free_attention

model = ExportedModel(battery.build('VisionTransformer'))
run = export(model, Path('model.onnx'), 'onnx', (65, 97))
for size in ((1, 65, 97), (2, 96, 129)):
    assert max(parity(model, run, battery.images(*size)).values()) <= 1e-4
x = torch.rand(1, 1, 16, 4)
assert 0 < hc_proportion(softmax_free_attention(x, x[:, :, ::4], x)) < 1
assert count_flops(battery.build('SOFT'), battery.images()).total() > 0
"""


def test_onnx_file_and_measures(alone):
    pytest.importorskip('onnxruntime')
    alone(FILE)


ALIGNED = """
from mmlinattn.adaptation import (
    aligned_pairs, attention_errors, carry_weights, our_backbone, prepare_alignment,
    student_config,
)
from mmlinattn.parts import build_model

arch = dict(embed_dims=8, depths=[1, 1], num_heads=[1, 2])
cfg = our_backbone(dict(type='mmlinattn.SwinTransformer', arch=arch), 'mmdet')
teacher, student = build_model(cfg), build_model(student_config(cfg, 'ELFATT'))
assert len(carry_weights(teacher, student)) == 8
prepare_alignment(teacher, student)
pairs = aligned_pairs(teacher, student)
errors = attention_errors(teacher, pairs, torch.rand(1, 3, 64, 64))
sum(errors.values()).backward()
assert [*errors] == ['0.0', '1.0']
"""


def test_adaptation(alone):
    """A student learns from its teacher."""
    alone(ALIGNED)


def test_import(alone):
    """Beside torch and what it imports itself, models import no other library."""
    alone(
        'import torch.utils.flop_counter\n'
        'before = {*sys.modules}\n'
        'import mmlinattn.models, mmlinattn.analysis, mmlinattn.hub\n'
        "new = {name.partition('.')[0] for name in {*sys.modules} - before}\n"
        'new -= {*sys.stdlib_module_names, "mmlinattn", "torch"}\n'
        'assert not new, new\n'
    )
