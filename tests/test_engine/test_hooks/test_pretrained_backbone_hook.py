import logging
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.model import BaseModel, BaseModule, PretrainedInit
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import PretrainedBackboneHook, check_pretrained
from mmlinattn.models import SOFT, ConvPoolingNeck
from mmlinattn.weights import transfer

ARCH = dict(embed_dims=[16], depths=[1], num_heads=[2])
CONSTANT = dict(type='Constant', layer='Linear', val=0.0)
SCRATCH = 'trains FROM SCRATCH'
NOWHERE = 'http://127.0.0.1:9/weights.pth'


class Model(BaseModel):
    """A classifier whose head is like mmpretrain's LinearClsHead."""

    def __init__(self, backbone={}, init_cfg=None, num_classes=1):
        super().__init__(init_cfg=init_cfg)
        self.backbone = SOFT(ARCH, sampling_ratios=[8], kernel_sizes=[3], **backbone)
        self.neck = ConvPoolingNeck(16, 16)
        self.head = BaseModule()
        self.head.fc = nn.Linear(16, num_classes)

    def forward(self, inputs, mode='tensor'):
        (features,) = self.neck(self.backbone(torch.stack(inputs)))
        return dict(loss=self.head.fc(features).mean())


@pytest.fixture
def weights(tmp_path):
    """Path of a whole model's checkpoint."""
    path = str(tmp_path / 'in1k.pth')
    torch.save(dict(state_dict=Model().state_dict()), path)
    return path


@pytest.fixture
def start(tmp_path, caplog):
    """Runs the hook like a runner before a training; returns the model."""

    def run(model=None, hook={}, comparison=None, **cfg):
        model = model or Model()
        runner = SimpleNamespace(
            cfg=cfg,
            model=model,
            work_dir=str(tmp_path),
            logger=logging.getLogger('hook'),
            optim_wrapper=OptimWrapper(torch.optim.SGD(model.parameters(), 0.1)),
        )
        caplog.set_level('INFO')
        hook = PretrainedBackboneHook(**hook)
        hook.comparison = comparison
        hook.before_run(runner)
        model.init_weights()
        return model

    return run


def same_backbone(model, path):
    expected = torch.load(path)['state_dict']
    return all(
        param.equal(expected[f'backbone.{name}'])
        for name, param in model.backbone.named_parameters()
    )


class Witness(Hook):
    """Notes if the backbone has its weights before other hooks see it."""

    priority = 'VERY_HIGH'

    def before_train(self, runner):
        self.seen = same_backbone(runner.model, runner.cfg.pretrained)


def test_training(weights, tmp_path):
    witness = Witness()
    runner = Runner(
        model=Model(),
        work_dir=str(tmp_path / 'work'),
        train_dataloader=dict(
            batch_size=2,
            dataset=[dict(inputs=torch.full((3, 32, 32), x)) for x in (0.0, 1.0)],
            sampler=dict(type='DefaultSampler', shuffle=False),
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        # no step: weights stay as they were initialized
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.0)),
        default_hooks=dict(pretrained=dict(type='mmlinattn.PretrainedBackboneHook')),
        custom_hooks=[witness, dict(type='EMAHook', momentum=0.1)],
        experiment_name='pretrained',
        cfg=Config(dict(pretrained=weights)),
    )
    runner.train()
    assert witness.seen and same_backbone(runner.model, weights)
    (average,) = [hook for hook in runner.hooks if hasattr(hook, 'ema_model')]
    assert same_backbone(average.ema_model.module, weights)


@pytest.mark.parametrize('head', [False, True])
def test_backbone_and_head(start, weights, caplog, head):
    model = start(hook=dict(head=head), pretrained=weights)
    assert same_backbone(model, weights) and SCRATCH not in caplog.text
    expected = torch.load(weights)['state_dict']
    for name in ('neck.layer.0.weight', 'head.fc.weight'):
        assert model.get_parameter(name).equal(expected[name]) == head


@pytest.mark.parametrize('head', [False, True])
def test_what_a_check_found_is_not_read_again(start, weights, head):
    hook = dict(type='mmlinattn.PretrainedBackboneHook', head=head)
    cfg = Config(dict(default_hooks=dict(pretrained=hook), pretrained=weights))
    comparison = check_pretrained(cfg, Model())
    gone = Path(weights).rename(Path(weights).with_name('gone.pth'))
    model = start(hook=dict(head=head), comparison=comparison, pretrained=weights)
    assert same_backbone(model, gone)
    expected = torch.load(gone)['state_dict']['head.fc.weight']
    assert model.head.fc.weight.equal(expected) == head
    assert 'earlier' not in model.backbone.init_cfg[-1]


def test_own_initial_values_of_what_weights_lack(start, weights, monkeypatch):
    """Those of the backbone's other initialization."""
    content = torch.load(weights)
    key = 'backbone.stages.0.blocks.0.ffn.layers.1'
    rest = {k: x for k, x in content['state_dict'].items() if not k.startswith(key)}
    torch.save(dict(content, state_dict=rest), weights)
    # a family's weights may lack it
    monkeypatch.setattr(transfer, 'is_scaling_vector', lambda name: True)
    for init_cfg in (CONSTANT, [CONSTANT]):
        model = start(Model(dict(init_cfg=init_cfg)), pretrained=weights)
        assert not model.get_parameter(f'{key}.weight').any()
        assert model.backbone.stages[0].blocks[0].ffn.layers[0][0].weight.any()


def test_student_and_teacher(start, weights):
    model = BaseModule()
    model.student, model.teacher = Model(), Model()
    start(model, pretrained=weights)
    assert same_backbone(model.student, weights)
    assert same_backbone(model.teacher, weights)


@pytest.mark.parametrize('warn', [True, False])
@pytest.mark.parametrize('cfg', [dict(pretrained=None), {}])
def test_from_scratch(start, caplog, cfg, warn):
    start(Model(dict(init_cfg=CONSTANT), [CONSTANT]), dict(warn=warn), **cfg)
    assert caplog.text.count(SCRATCH) == warn


@pytest.mark.parametrize('pretrained', [None, NOWHERE])
@pytest.mark.parametrize(
    'winner, kind, in_list',
    [
        ('load_from', None, False),
        ('model.init_cfg', 'Pretrained', False),
        ('model.init_cfg', PretrainedInit, True),
        ('backbone.init_cfg', PretrainedInit, False),
        ('backbone.init_cfg', 'Pretrained', True),
    ],
)
def test_other_weights_win(start, weights, caplog, winner, kind, in_list, pretrained):
    """The default address of a config is not requested."""
    init_cfg = dict(type=kind, checkpoint=weights)
    init_cfg = [CONSTANT, init_cfg] if in_list else init_cfg
    if winner == 'load_from':
        start(load_from=weights, pretrained=pretrained)
    elif winner == 'model.init_cfg':
        start(Model(init_cfg=init_cfg), pretrained=pretrained)
    else:
        model = start(Model(dict(init_cfg=init_cfg)), pretrained=pretrained)
        assert same_backbone(model, weights)
    assert SCRATCH not in caplog.text
    if pretrained:
        assert f'{winner} overrides pretrained={NOWHERE!r}' in caplog.text


def test_weights_that_cannot_be_had(start, weights, monkeypatch, tmp_path):
    monkeypatch.setenv('no_proxy', '*')
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path))
    with pytest.raises(ConnectionError, match='set pretrained=None to train from scra'):
        start(pretrained=NOWHERE)
    with pytest.raises(FileNotFoundError, match="pretrained='nowhere.pth'"):
        start(pretrained='nowhere.pth')
    with pytest.raises(KeyError, match='has no head for this BaseModule.*fc.bias'):
        start(Model(num_classes=3), dict(head=True), pretrained=weights)


def test_resume(start, weights, tmp_path, caplog):
    # nothing to go on from: the same as a new run
    assert same_backbone(start(pretrained=weights, resume=True), weights)
    # going on needs the pretrained weights no more
    assert start(pretrained=NOWHERE, resume=True, load_from='epoch_1.pth')
    (tmp_path / 'last_checkpoint').write_text('epoch_1.pth')
    assert start(pretrained=None, resume=True)
    assert SCRATCH not in caplog.text


def test_nothing_happens_in_a_test():
    cfg = dict(pretrained='nowhere.pth')
    PretrainedBackboneHook().before_run(SimpleNamespace(optim_wrapper=None, cfg=cfg))


HOOK = dict(
    default_hooks=dict(pretrained=dict(type='mmlinattn.PretrainedBackboneHook'))
)
DETECTOR = dict(backbone=dict(init_cfg=dict(type='Pretrained', checkpoint='its.pth')))


@pytest.mark.parametrize(
    'cfg, error',
    [
        (HOOK, FileNotFoundError),
        (dict(custom_hooks=[PretrainedBackboneHook()]), FileNotFoundError),
        # a variable of someone else's config, which has its effect
        (dict(model=dict(necks=[DETECTOR])), None),
        (dict(model=dict(necks=[])), ValueError),
        (dict(HOOK, pretrained=None), None),
    ],
)
def test_check_pretrained(cfg, error):
    cfg, model = Config(dict(dict(pretrained='its.pth'), **cfg)), Model()
    refusal = pytest.raises(error or (), match=r"pretrained='its.pth'")
    with refusal if error else nullcontext():
        check_pretrained(cfg, model, named=True)
    lines = []
    if error is ValueError:  # a base may have one, too, which is a line
        check_pretrained(cfg, model, warn=lines.append)
        assert 'would have no effect' in lines[0] and 'Add default_hooks' in lines[0]
        model.backbone = nn.Conv2d(3, 16, 1)  # of another library
        check_pretrained(cfg, model, warn=lines.append)
        assert len(lines) == 1


def test_head_of_another_backbone(start, weights):
    model = Model()
    model.backbone = nn.Conv2d(3, 16, 1)
    with pytest.raises(ValueError, match='needs a backbone of mmlinattn, got Conv2d'):
        start(model, dict(head=True), pretrained=weights)
