import itertools

import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import (
    BaseModel,
    BaseModule,
    MMDistributedDataParallel,
    PretrainedInit,
)
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import PretrainedBackboneHook, check_pretrained
from mmlinattn.models import SOFT

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=[16], depths=[1], num_heads=[2])
RUNS = itertools.count()


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return dict(inputs=torch.full((3, 32, 32), float(index)))


class Model(BaseModel):
    def __init__(self, backbone={}, init_cfg=None):
        super().__init__(init_cfg=init_cfg)
        self.backbone = SOFT(ARCH, sampling_ratios=[8], kernel_sizes=[3], **backbone)
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, inputs, mode='tensor'):
        out = self.head(self.backbone(torch.stack(inputs))[0]).mean()
        return dict(loss=out) if mode == 'loss' else [out]


class Nothing(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        return {}


@pytest.fixture
def weights(tmp_path):
    """Path of a whole model's checkpoint."""
    path = str(tmp_path / 'in1k.pth')
    torch.save(dict(state_dict=Model().state_dict()), path)
    return path


@pytest.fixture
def make_runner(tmp_path, caplog):
    """Builds a runner that trains one step and logs to caplog."""

    def make(backbone={}, hook={}, hooks=(), init_cfg=None, **options):
        loader = dict(
            batch_size=2,
            dataset=Images(),
            sampler=dict(type='DefaultSampler', shuffle=False),
        )
        runner = Runner(
            model=Model(backbone, init_cfg),
            work_dir=str(tmp_path / 'work'),
            train_dataloader=loader,
            train_cfg=dict(by_epoch=True, max_epochs=1),
            # no step: weights stay as they were initialized
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.0)),
            test_dataloader=loader,
            test_cfg=dict(),
            test_evaluator=Nothing(),
            default_hooks=dict(
                pretrained=dict(type='mmlinattn.PretrainedBackboneHook', **hook)
            ),
            custom_hooks=list(hooks),
            load_from=options.get('load_from'),
            resume=options.get('resume', False),
            experiment_name=f'hook{next(RUNS)}',
            cfg=Config(options),
        )
        runner.logger.addHandler(caplog.handler)
        return runner

    return make


@pytest.fixture
def warnings(caplog):
    """How often the log says that the backbone trains from scratch."""
    return lambda: sum(
        'FROM SCRATCH' in record.getMessage()
        for record in caplog.records
        if record.levelname == 'WARNING'
    )


def same_backbone(runner, path):
    expected = torch.load(path)['state_dict']
    return all(
        torch.equal(param, expected[f'backbone.{name}'])
        for name, param in runner.model.backbone.named_parameters()
    )


def test_loads_backbone_only(make_runner, weights, warnings):
    runner = make_runner(pretrained=weights)
    runner.train()
    assert same_backbone(runner, weights)
    expected = torch.load(weights)['state_dict']
    assert not torch.equal(runner.model.head.weight, expected['head.weight'])
    assert not warnings()


@pytest.mark.parametrize('options', [dict(pretrained=None), {}])
def test_from_scratch_warns_once(make_runner, warnings, options):
    runner = make_runner(**options)
    runner.train()
    assert warnings() == 1


def test_from_scratch_on_purpose(make_runner, warnings):
    make_runner(hook=dict(warn=False), pretrained=None).train()
    assert not warnings()


class Witness(Hook):
    """Notes what an heir's hooks see of the backbone."""

    priority = 'VERY_HIGH'

    def before_train(self, runner):
        backbone = runner.model.backbone
        self.seen = [param.clone() for param in backbone.parameters()]


def test_beside_custom_hooks(make_runner, weights):
    """Weights are loaded before training, whatever other hooks there are."""
    witness = Witness()
    runner = make_runner(
        hooks=[witness, dict(type='EMAHook', momentum=0.1)], pretrained=weights
    )
    runner.train()
    expected = torch.load(weights)['state_dict']
    names = [name for name, _ in runner.model.backbone.named_parameters()]
    assert len(witness.seen) == len(names) > 0
    for name, param in zip(names, witness.seen):
        assert torch.equal(param, expected[f'backbone.{name}'])
    (average,) = [hook for hook in runner.hooks if hasattr(hook, 'ema_model')]
    averaged = average.ema_model.module.backbone.state_dict()
    assert all(torch.equal(averaged[n], expected[f'backbone.{n}']) for n in names)


def test_cfg_options(make_runner, weights):
    runner = make_runner(pretrained=None)
    runner.cfg.merge_from_dict({'pretrained': weights})
    runner.train()
    assert same_backbone(runner, weights)


def test_silent_with_load_from(make_runner, weights, warnings):
    runner = make_runner(load_from=weights, pretrained=None)
    runner.train()
    assert same_backbone(runner, weights)
    assert not warnings()


CONSTANT = dict(type='Constant', layer='Linear', val=0.0)


@pytest.mark.parametrize('kind', ['Pretrained', PretrainedInit])
@pytest.mark.parametrize('others', [None, [], [CONSTANT]])
@pytest.mark.parametrize('whole', [False, True])
def test_silent_with_init_cfg(make_runner, weights, warnings, kind, others, whole):
    """The backbone's init_cfg or the whole model's, alone or in a list."""
    init_cfg = dict(type=kind, checkpoint=weights)
    if others is not None:
        init_cfg = [*others, init_cfg]
    options = dict(init_cfg=init_cfg)
    if not whole:
        options = dict(backbone=options)
    runner = make_runner(pretrained=None, **options)
    runner.train()
    assert same_backbone(runner, weights)
    assert not warnings()


def test_other_init_cfg_warns(make_runner, warnings):
    make_runner(backbone=dict(init_cfg=CONSTANT), init_cfg=[CONSTANT]).train()
    assert warnings() == 1


NOWHERE = 'http://127.0.0.1:9/weights.pth'


@pytest.mark.parametrize('winner', ['load_from', 'model.init_cfg', 'backbone.init_cfg'])
def test_other_weights_win(make_runner, weights, caplog, winner):
    """The address that a config has by default is not even asked."""
    pretrained = dict(init_cfg=dict(type='Pretrained', checkpoint=weights))
    options = {
        'load_from': dict(load_from=weights),
        'model.init_cfg': pretrained,
        'backbone.init_cfg': dict(backbone=pretrained),
    }
    runner = make_runner(pretrained=NOWHERE, **options[winner])
    caplog.set_level('INFO')
    runner.train()
    assert same_backbone(runner, weights)
    assert f'{winner} takes the place of pretrained={NOWHERE!r}' in caplog.text


def test_no_network(make_runner, monkeypatch, tmp_path):
    monkeypatch.setenv('no_proxy', '*')
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path))
    runner = make_runner(pretrained=NOWHERE)
    with pytest.raises(ConnectionError) as error:
        runner.train()
    (line,) = str(error.value).splitlines()
    assert line.startswith(f'pretrained={NOWHERE!r} cannot be downloaded')
    assert 'give its path, or set pretrained=None to train from scratch' in line
    assert not runner.model.backbone.is_init


class Classifier(Model):
    """With a head as mmpretrain's LinearClsHead has it."""

    def __init__(self, *args, num_classes=1):
        super().__init__(*args)
        self.head = BaseModule()
        self.head.fc = nn.Linear(16, num_classes)

    def forward(self, inputs, mode='tensor'):
        maps = self.backbone(torch.stack(inputs))[0]
        out = self.head.fc(maps.mean((2, 3))).mean()
        return dict(loss=out) if mode == 'loss' else [out]


@pytest.mark.parametrize('head', [False, True])
def test_head_of_a_classifier(make_runner, tmp_path, monkeypatch, head):
    monkeypatch.setitem(globals(), 'Model', Classifier)
    state_dict, path = Classifier().state_dict(), str(tmp_path / 'classifier.pth')
    torch.save(dict(state_dict=state_dict), path)
    runner = make_runner(pretrained=path, hook=dict(head=head))
    runner.train()
    assert same_backbone(runner, path)
    weight = runner.model.head.fc.weight
    assert torch.equal(weight, state_dict['head.fc.weight']) == head


def test_head_of_another_classifier(make_runner, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), 'Model', Classifier)
    path = str(tmp_path / 'classifier.pth')
    torch.save(dict(state_dict=Classifier(num_classes=3).state_dict()), path)
    with pytest.raises(KeyError, match='has no head for this BaseModule.*fc.bias'):
        make_runner(pretrained=path, hook=dict(head=True)).train()


def test_missing_file(make_runner, tmp_path):
    path = str(tmp_path / 'nowhere.pth')
    runner = make_runner(pretrained=path)
    with pytest.raises(FileNotFoundError, match="pretrained='.*nowhere.pth'"):
        runner.train()
    assert runner.iter == 0
    assert not runner.model.backbone.is_init


def test_other_family(make_runner, tmp_path):
    path = str(tmp_path / 'resnet.pth')
    torch.save(dict(state_dict={'conv1.weight': torch.zeros(1)}), path)
    with pytest.raises(KeyError, match='lacks'):
        make_runner(pretrained=path).train()


def test_test_is_silent(make_runner, tmp_path, warnings):
    make_runner(pretrained=None).test()
    make_runner(pretrained=str(tmp_path / 'nowhere.pth')).test()
    assert not warnings()


def test_resume(make_runner, weights, tmp_path, warnings):
    # nothing to go on from: the same as a new run
    runner = make_runner(pretrained=weights, resume=True)
    runner.train()
    assert same_backbone(runner, weights)
    # going on needs the pretrained weights no more
    (tmp_path / 'in1k.pth').rename(tmp_path / 'elsewhere.pth')
    runner = make_runner(pretrained=weights, resume=True)
    runner.train()
    assert same_backbone(runner, tmp_path / 'elsewhere.pth')
    checkpoint = str(tmp_path / 'work' / 'epoch_1.pth')
    make_runner(pretrained=None, resume=True, load_from=checkpoint).train()
    assert not warnings()


def test_model_wrapper(make_runner, weights):
    runner = make_runner(pretrained=weights)
    wrapper = MMDistributedDataParallel.__new__(MMDistributedDataParallel)
    nn.Module.__init__(wrapper)
    wrapper.module = runner.model
    runner.model = wrapper
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.call_hook('before_run')
    assert wrapper.module.backbone.init_cfg['checkpoint'] == weights


OUR_HOOK = dict(type='mmlinattn.PretrainedBackboneHook')
DETECTOR = dict(backbone=dict(init_cfg=dict(type='Pretrained', checkpoint='its.pth')))


@pytest.mark.parametrize(
    'options',
    [
        dict(default_hooks=dict(pretrained=OUR_HOOK)),
        dict(default_hooks=dict(timer=None), custom_hooks=[OUR_HOOK]),
        dict(custom_hooks=[dict(type=PretrainedBackboneHook)]),
        dict(custom_hooks=[PretrainedBackboneHook()]),
        # a variable of someone else's config, which has its effect
        dict(model=dict(necks=[DETECTOR])),
    ],
)
def test_check_pretrained(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = Config(dict(pretrained='its.pth', **options))
    with pytest.raises(FileNotFoundError, match=r"pretrained='its.pth'"):
        check_pretrained(cfg)
    (tmp_path / 'its.pth').touch()
    check_pretrained(cfg)
    cfg.pretrained = None
    check_pretrained(cfg)


@pytest.mark.parametrize(
    'options',
    [
        {},
        dict(default_hooks=None, custom_hooks=None),
        dict(default_hooks=dict(timer=dict(type='IterTimerHook')), model=DETECTOR),
    ],
)
def test_pretrained_without_effect(options):
    cfg = Config(dict(pretrained='https://host/mine.pth', **options))
    with pytest.raises(ValueError, match='mine.pth.*would have no effect'):
        check_pretrained(cfg)
    texts = []
    check_pretrained(cfg, texts.append)
    assert 'would have no effect' in texts[0]


def test_pretrained_is_no_path():
    cfg = Config(dict(pretrained=True, default_hooks=dict(pretrained=OUR_HOOK)))
    with pytest.raises(ValueError, match='path or address of a checkpoint, got True'):
        check_pretrained(cfg)
