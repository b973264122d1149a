"""Alignment as a model of MMEngine's: what learns, its log and its checkpoints."""

import copy

import pytest
import torch
from loading import ROOT
from miniature_backbones import CASES
from mmengine.registry import MODELS
from mmengine.structures import BaseDataElement

from mmlinattn.adaptation import student_config
from mmlinattn.engine import alignment
from mmlinattn.parts import build_model
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet
from mmlinattn.weights import load_pretrained

SWIN = dict(CASES['SwinTransformer'], type='mmlinattn.SwinTransformer')
KINDS = ('AttentionAlignment', 'FeatureAlignment')
SETTINGS = dict(zip(KINDS, ('attention-alignment', 'feature-alignment')))


@pytest.fixture(scope='module')
def weights(tmp_path_factory):
    """A file of a teacher's weights."""
    model = build_model(SWIN)
    with quiet():
        model.init_weights()
    path = tmp_path_factory.mktemp('teacher') / 'teacher.pth'
    entries = {f'backbone.{key}': x for key, x in model.state_dict().items()}
    torch.save(dict(state_dict=entries), path)
    return str(path)


def aligned(kind, weights, teacher=SWIN, **student):
    """An alignment in training mode, as a runner makes it."""
    init_cfg = dict(type='Pretrained', checkpoint=weights)
    cfg = dict(type=f'mmlinattn.{kind}', teacher=dict(teacher, init_cfg=init_cfg))
    cfg['backbone'] = dict(student_config(teacher, 'ELFATT'), **student)
    cfg['data_preprocessor'] = dict(type='mmengine.ImgDataPreprocessor')
    model = MODELS.build(cfg)
    with quiet():
        model.init_weights()
    return model.train()


def batch():
    return dict(
        inputs=[torch.rand(3, 64, 64) for _ in range(2)],
        data_samples=[BaseDataElement() for _ in range(2)],
    )


@pytest.mark.parametrize('kind', KINDS)
def test_settings_name_the_model(kind):
    path = ROOT / f'configs/_base_/settings/photos-224_{SETTINGS[kind]}.py'
    cfg = load_config(str(path))
    assert cfg.model.type == f'mmlinattn.{kind}'
    assert MODELS.get(cfg.model.type).__name__ == kind


@pytest.mark.parametrize(
    'kind, keys',
    [
        (KINDS[0], ['loss_0.0', 'loss_0.1', 'loss_1.0', 'loss_2.0', 'loss_3.0']),
        (KINDS[1], ['loss_0', 'loss_1', 'loss_2', 'loss_3']),
    ],
)
def test_the_log_has_each_loss(weights, kind, keys):
    """And what learns is what the stage is for."""
    model = aligned(kind, weights)
    data = model.data_preprocessor(batch(), training=True)
    total, log = model.parse_losses(model(**data, mode='loss'))
    assert [key for key in log if key != 'loss'] == keys
    torch.testing.assert_close(log['loss'], sum(log[key] for key in keys))
    total.backward()
    with_gradient = {name for name, x in model.named_parameters() if x.grad is not None}
    wanted = {name for name, _ in model.named_parameters() if 'backbone.' in name}
    if kind == KINDS[0]:
        wanted = {name for name in wanted if '.attn.' in name}
    # parallel training waits for the gradients of all that want one
    assert with_gradient == wanted
    assert wanted == {name for name, x in model.named_parameters() if x.requires_grad}
    assert model.backbone.training and not model.teacher.training
    outs = model(data['inputs'])
    assert [out.shape[1] for out in outs] == [8, 16, 32, 64]


def test_frozen_stages_learn(weights):
    """A teacher's config may be that of a training that freezes some."""
    teacher = dict(SWIN, frozen_stages=2, with_cp=True)
    for kind in KINDS:
        model = aligned(kind, weights, teacher)
        losses = model(torch.rand(1, 3, 64, 64), mode='loss')
        sum(losses.values()).backward()
        assert model.backbone.stages[0].blocks[0].attn.qkv.weight.grad is not None


def test_the_start_is_the_teacher_or_its_own(weights, tmp_path):
    model = aligned(KINDS[0], weights)
    theirs, ours = model.teacher.state_dict(), model.backbone.state_dict()
    assert all(torch.equal(theirs[key], x) for key, x in ours.items() if key in theirs)
    path = str(tmp_path / 'student.pth')
    changed = {f'backbone.{key}': x + 1 for key, x in ours.items()}
    torch.save(dict(state_dict=changed), path)
    init_cfg = dict(type='Pretrained', checkpoint=path)
    model = aligned(KINDS[1], weights, init_cfg=init_cfg)
    after = model.backbone.state_dict()
    assert all(torch.equal(after[key], x + 1) for key, x in ours.items())


def test_its_checkpoints_start_a_student(weights, tmp_path):
    """`pretrained` takes the student in them, and its teacher is of no use."""
    model = aligned(KINDS[0], weights)
    path = tmp_path / 'epoch_1.pth'
    torch.save(dict(state_dict=model.state_dict()), path)
    student = build_model(student_config(SWIN, 'ELFATT'))
    load_pretrained(student, str(path))
    for key, x in student.state_dict().items():
        assert torch.equal(x, model.backbone.state_dict()[key])


def test_copies_have_pairs_of_their_own(weights):
    """Checks before a run copy the model."""
    model = aligned(KINDS[0], weights)
    copied = copy.deepcopy(model)
    attention = copied.backbone.stages[0].blocks[0].attn
    assert copied.pairs[0].student is attention
    assert model.pairs[0].student is not attention


def test_a_teacher_without_weights():
    cfg = dict(type='mmlinattn.AttentionAlignment', teacher=SWIN)
    model = MODELS.build(dict(cfg, backbone=student_config(SWIN, 'ELFATT')))
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, 'log', lambda text, level=0: seen.append(text))
        model.init_weights()
    assert 'The teacher is NOT TRAINED' in seen[0] and 'new ones: ' in seen[1]


def test_a_wrong_pair():
    cfg = dict(type='mmlinattn.AttentionAlignment', teacher=SWIN, backbone=SWIN)
    with pytest.raises(ValueError, match='have the same attentions'):
        MODELS.build(cfg)
