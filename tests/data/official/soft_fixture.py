"""Weights, images and recorded outputs of the official SOFT code, in miniature.

``soft_keys.json`` has names and shapes of official state dicts: of ``soft_tiny``
(``soft_norm_tiny`` has the same ones) and of the miniature below. ``soft_outputs.npz``
has what the official code makes of the miniature with :func:`weights` and
:func:`image`: maps of the four stages, the last one after the final norm and without
class token, and logits. Both were recorded on a CPU, torch 2.1.2, by running this
file on a checkout of github.com/fudan-zvg/SOFT at d3febc3:

    python soft_fixture.py CHECKOUT

The official code runs as it is, except for what a CPU lacks: its CUDA extension (its
own torch kernel is chosen), ``Tensor.cuda``, and the wrapper of its Newton iteration
that only takes CUDA tensors. ``SoftmaxFreeNormAttentionKernel`` calls ``super`` by a
name that does not exist; here it does. Its step size is one for the whole batch, ours
is one per matrix, which differs where 20 steps don't converge: the weights keep the
kernel matrices well-conditioned.
"""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

HERE = Path(__file__).parent
ARCH = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_heads=[1, 2, 3, 4])
NUM_CLASSES = 5
VARIANTS = ('soft', 'softpp')
IMAGES = ('noise', 'smooth')


def weights(seed=0):
    """Official state dict of the miniature, the same for both variants."""
    rng = np.random.RandomState(seed)
    shapes = json.loads((HERE / 'soft_keys.json').read_text())['miniature']
    state_dict = {}
    for key, shape in sorted(shapes.items()):
        value = rng.standard_normal(shape)
        if key.endswith('num_batches_tracked'):
            value = np.int64(100)
        elif key.endswith('running_var'):
            value = np.exp(0.1 * value)
        elif len(shape) == 1 and key.endswith('weight'):
            value = 1 + 0.1 * value
            if '.Qnorm_act.' in key:
                # spreads the landmarks: off-diagonal kernel values get small
                value = value * (2.5 if key.startswith('block3') else 1.5)
        elif len(shape) > 1 and key.endswith('weight'):
            value = value / np.sqrt(np.prod(shape[1:]))
        else:
            value = 0.1 * value
        value = torch.from_numpy(np.array(value))
        state_dict[key] = value.float() if value.is_floating_point() else value
    return state_dict


def image(kind, shape=(90, 150)):
    """One normalized image, (1, 3, H, W): 'noise', or 'smooth' with a flat half."""
    height, width = shape
    if kind == 'noise':
        value = np.random.RandomState(1).standard_normal((1, 3, height, width))
    else:
        y, x = np.mgrid[:height, :width] / 100.0
        waves = [np.sin(5 * x + 3 * y + phase) for phase in (0.0, 1.0, 2.0)]
        value = np.where(x < width / 200.0, 0.5, waves)[None]
    return torch.from_numpy(value).float()


def outputs():
    """Recorded tensors by variant, kind of image and name."""
    with np.load(HERE / 'soft_outputs.npz') as recorded:
        return {key: torch.from_numpy(recorded[key]) for key in recorded.files}


def import_official(checkout):
    """The official modules of layers and models, able to run on a CPU."""

    def stub(name, **contents):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(contents)

    stub('SOFT._C')
    for name in ('timm', 'timm.models'):
        stub(name)
    stub(
        'timm.models.layers',
        DropPath=torch.nn.Identity,
        to_2tuple=lambda side: (side, side),
        trunc_normal_=torch.nn.init.trunc_normal_,
    )
    stub('timm.models.registry', register_model=lambda function: function)
    stub('timm.models.vision_transformer', _cfg=dict)
    sys.path.insert(0, str(checkout))
    from models import softmax_free_transformer as layers
    from models import softmax_free_vision_transformer as models
    from SOFT.kernel.inverse import newton_inv

    torch.Tensor.cuda = lambda tensor: tensor
    layers.newton_inverse_kernel = newton_inv
    layers.SoftmaxFreeSymNormAttentionKernel = layers.SoftmaxFreeNormAttentionKernel
    return models


def shapes_of(model):
    return {key: list(value.shape) for key, value in model.state_dict().items()}


@torch.no_grad()
def run(model, x):
    """Stages and logits of an official model."""
    maps = []
    for name in ('patch_embed2', 'patch_embed3', 'patch_embed4'):
        getattr(model, name).register_forward_pre_hook(
            lambda module, args: maps.append(args[0])
        )
    sizes = []
    model.patch_embed4.register_forward_hook(
        lambda module, args, out: sizes.append(out[1])
    )
    tokens = []
    model.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    logits = model(x)
    last = tokens[0][:, 1:].transpose(1, 2).unflatten(-1, sizes[0])
    return {**{f'stage{i}': m for i, m in enumerate(maps + [last])}, 'logits': logits}


def main(checkout):
    models = import_official(checkout)
    tiny, norm_tiny = (
        shapes_of(make(kernel_method='torch'))
        for make in (models.soft_tiny, models.soft_norm_tiny)
    )
    assert tiny == norm_tiny
    miniatures = {
        variant: make(
            **ARCH,
            patch_size=4,
            num_classes=NUM_CLASSES,
            qkv_bias=True,
            norm_layer=lambda dims: torch.nn.LayerNorm(dims, eps=1e-6),
            kernel_method='torch',
        ).eval()
        for variant, make in zip(
            VARIANTS,
            (
                models.SoftmaxFreeVisionTransformer,
                models.SoftmaxFreeNormVisionTransformer,
            ),
        )
    }
    keys = dict(soft_tiny=tiny, miniature=shapes_of(miniatures['soft']))
    (HERE / 'soft_keys.json').write_text(
        json.dumps(keys).replace('], ', '],\n').replace('}, ', '},\n') + '\n'
    )
    recorded = {}
    for variant, model in miniatures.items():
        model.load_state_dict(weights())
        for kind in IMAGES:
            for name, value in run(model, image(kind)).items():
                recorded[f'{variant}_{kind}_{name}'] = value.numpy()
    np.savez_compressed(HERE / 'soft_outputs.npz', **recorded)


if __name__ == '__main__':
    main(sys.argv[1])
