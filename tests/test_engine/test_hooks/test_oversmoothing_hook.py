import itertools
import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

from mmlinattn.analysis import hc_proportion, token_similarity
from mmlinattn.engine import OversmoothingHook
from mmlinattn.models import VisionTransformer

pytestmark = pytest.mark.modern

RUNS = itertools.count()
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2)


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return dict(inputs=torch.rand(3, 32, 40, generator=generator))


class Model(BaseModel):
    def __init__(self, **options):
        super().__init__()
        self.backbone = VisionTransformer(ARCH, img_size=32, patch_size=8, **options)
        self.hooks = []

    def forward(self, inputs, mode='loss'):
        self.hooks.append(
            sum(len(module._forward_hooks) for module in self.backbone.modules())
        )
        self.inputs = torch.stack(inputs)
        return dict(loss=self.backbone(self.inputs)[0].square().mean())


def train(folder, model, hook=None, iters=5):
    runner = Runner(
        model=model,
        work_dir=str(folder),
        train_dataloader=dict(
            batch_size=2, dataset=Images(), sampler=dict(type='DefaultSampler')
        ),
        train_cfg=dict(by_epoch=False, max_iters=iters),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        custom_hooks=[] if hook is None else [hook],
        visualizer=dict(type='Visualizer', vis_backends=[dict(type='LocalVisBackend')]),
        default_hooks=dict(logger=None, checkpoint=None),
        experiment_name=f'oversmoothing{next(RUNS)}',
        randomness=dict(seed=0),
    )
    runner.train()
    logs = Path(folder).rglob('scalars.json')
    return [json.loads(x) for log in logs for x in log.read_text().splitlines()]


def hook(**options):
    return dict(type='mmlinattn.OversmoothingHook', **options)


def test_every_k_iterations(tmp_path):
    model = Model(attn_scale=True, feat_scale=True)
    lines = train(tmp_path, model, hook(interval=2))
    lines = [x for x in lines if any(key.startswith('oversmoothing/') for key in x)]
    assert [x['step'] for x in lines] == [2, 4]
    # no forward hooks stay
    assert model.hooks == [0, 2, 0, 2, 0]
    names = {
        f'oversmoothing/{name.format(f"backbone.blocks.{i}")}'
        for i in range(2)
        for name in (
            *('hc_proportion/{}', 'token_similarity/{}', 'scale_norm/{}.attn.omega'),
            *(f'scale_norm/{{}}.feat_scale.{x}_scale' for x in ('dc', 'hc')),
        )
    }
    assert names == lines[0].keys() - {'step'}


def test_what_it_logs(tmp_path):
    """The measures of the step's own tokens; a learning rate of 0.1 moves vectors."""
    torch.manual_seed(0)
    model = Model(attn_scale=True)
    seen = []
    model.backbone.blocks[1].register_forward_hook(
        lambda module, args, out: seen.append(out.detach())
    )
    (line,) = train(tmp_path, model, hook(interval=1, num_images=2), iters=1)
    (tokens,) = seen
    for measure in (hc_proportion, token_similarity):
        key = f'oversmoothing/{measure.__name__}/backbone.blocks.1'
        assert line[key] == pytest.approx(measure(tokens).mean().item(), rel=1e-4)
    omega = model.backbone.blocks[0].attn.omega
    key = 'oversmoothing/scale_norm/backbone.blocks.0.attn.omega'
    assert line[key] == pytest.approx(omega.norm().item(), rel=1e-4) and omega.any()


@pytest.mark.parametrize('with_cp', (False, True))
def test_training_is_the_same(tmp_path, with_cp):
    states = []
    for name in ('with', 'without'):
        torch.manual_seed(0)
        model = Model(feat_scale=True, with_cp=with_cp)
        train(tmp_path / name, model, hook(interval=1) if name == 'with' else None, 3)
        states.append(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(*(x.values() for x in states)))


def test_few_tokens_of_many():
    """Up to num_tokens tokens are compared, the first and last among them."""
    found = OversmoothingHook(num_tokens=3)
    x = torch.randn(4, 9, 5)

    class Block:
        name, tokens = 'block', x

    found.measure(Block)
    expected = token_similarity(x[:1, [0, 4, 8]]).mean()
    torch.testing.assert_close(found.scalars['token_similarity/block'], expected)
    expected = hc_proportion(x[:1]).mean()
    torch.testing.assert_close(found.scalars['hc_proportion/block'], expected)


def test_a_model_without_attention():
    with pytest.raises(ValueError, match='Linear has no attention of mmlinattn'):
        OversmoothingHook().before_train(Namespace(model=nn.Linear(1, 1)))
