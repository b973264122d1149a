"""Weights, images and recorded outputs of the official FLatten and Agent code, narrow.

``leaplab_keys.json`` has names and shapes of official state dicts, without buffers.
``leaplab_outputs.npz`` has the models' outputs with :func:`weights` and :func:`image`:
a classifier's logits and tokens after the final norm, every 7th value of the four maps
of the detectors' backbone; and the number of parameters of the papers'
classifiers (``parameters/``). They were recorded on a CPU, torch 2.1.2, einops 0.8.2,
by running this file on checkouts of github.com/LeapLabTHU/FLatten-Transformer at
abdb115 and github.com/LeapLabTHU/Agent-Attention at 207ce3e:

    python leaplab_fixture.py FLATTEN AGENT

The official code runs unchanged, with stand-ins for its imports of timm and of the
detection library that it was written for.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import recording

NAME = 'leaplab'
NUM_CLASSES = 5
ARCHS = dict(
    swin=dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 8]),
    cswin=dict(embed_dims=8, depths=[1, 2, 2, 1], num_heads=[2, 4, 8, 16]),
)
NAMES = ('flatten_swin', 'flatten_cswin', 'agent_swin', 'agent_cswin', 'agent_detector')
IMAGE_SHAPES = dict(agent_detector=(260, 330))  # squares of 224 pixels otherwise
BUFFERS = ('attn_mask', 'relative_position_index')
STRIDE = 7


def scale(key, shape, value):
    if 'norm' in key and key.endswith('weight'):
        return 1 + 0.1 * value
    if key.endswith(('bias_table', 'positional_encoding', 'scale', '_bias')):
        return 0.5 * value
    return value / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1 * value


RECORDING = recording.Recording(NAME, scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    return recording.noise(1, 3, *IMAGE_SHAPES.get(name, (224, 224)))


def thin(maps):
    """The recorded part of a detector's maps."""
    return {f'map{i}': x.flatten()[::STRIDE] for i, x in enumerate(maps)}


def official_models(flatten, agent):
    """Functions that build the recorded models, and the papers', by name."""
    recording.stub_backbones(lambda cls: cls)
    files = dict(
        flatten_swin=Path(flatten, 'models/flatten_swin.py'),
        flatten_cswin=Path(flatten, 'models/flatten_cswin.py'),
        agent_swin=Path(agent, 'agent_transformer/models/agent_swin.py'),
        agent_cswin=Path(agent, 'agent_transformer/models/agent_cswin.py'),
        agent_detector=Path(
            agent, 'downstream/detection/mmdet/models/backbones/agent_swin.py'
        ),
    )
    modules = {
        name: recording.import_file(
            path, 'official.models.backbones.' if name == 'agent_detector' else ''
        )
        for name, path in files.items()
    }

    def swin(name, kind, arch, **options):
        return getattr(modules[name], kind)(
            window_size=56,
            embed_dim=arch['embed_dims'],
            depths=arch['depths'],
            num_heads=arch['num_heads'],
            **options,
        )

    def cswin(name, arch, **options):
        return modules[name].CSWinTransformer(
            embed_dim=arch['embed_dims'],
            depth=arch['depths'],
            num_heads=arch['num_heads'],
            la_split_size='56-28-14-7',
            **options,
        )

    def classifiers(archs, base, **options):
        agents = dict(options, agent_num=[9, 16, 49, 49])
        swins, cswins = archs['swin'], archs['cswin']
        kinds = 'FLattenSwinTransformer', 'AgentSwinTransformer'
        return dict(
            flatten_swin=swin(
                'flatten_swin', kinds[0], swins, attn_type='LLSS', **options
            ),
            flatten_cswin=cswin('flatten_cswin', cswins, attn_type='LLSS', **options),
            agent_swin=swin('agent_swin', kinds[1], swins, attn_type=base, **agents),
            agent_cswin=cswin('agent_cswin', cswins, attn_type='AABB', **agents),
        )

    recorded = classifiers(ARCHS, 'AAMB1', num_classes=NUM_CLASSES)
    recorded['agent_detector'] = swin(
        'agent_detector',
        'AgentSwinTransformer',
        ARCHS['swin'],
        attn_type='AAAB',
        downstream_agent_shapes=[(9, 9), (12, 12), (14, 14), (7, 7)],
    )
    return recorded, classifiers


def run(model, x):
    """The recorded outputs of an official model."""
    outs = recording.logits_and_tokens(model, x)
    return outs if isinstance(outs, dict) else thin(outs)


AGENT_SWINS = dict(tiny='AAAB', small='AABB', base='AAMB2')


def main(flatten, agent):
    recording.stub_timm()
    recorded, classifiers = official_models(flatten, agent)
    RECORDING.write(recorded, run, image, BUFFERS)
    for size, base in AGENT_SWINS.items():
        archs = dict(swin=recording.SWINS[size], cswin=recording.CSWINS[size])
        models = classifiers(archs, base).items()
        RECORDING.write_sizes((f'{name}_{size}', model) for name, model in models)


if __name__ == '__main__':
    main(*sys.argv[1:])
