"""Weights, inputs and recorded outputs of the official FLatten, Agent, InLine and
PolaFormer code, narrow.

``leaplab_keys.json`` (FLatten, Agent) and ``inline_keys.json`` (InLine, PolaFormer)
have names and shapes of official state dicts, without buffers. ``leaplab_outputs.npz``
and ``inline_outputs.npz`` have the models' outputs with :func:`weights` and
:func:`image`: a classifier's logits and tokens after the final norm, every 7th value of
the four maps of the detectors' backbone, the tokens of InLine-DeiT's attention; and
every 29th value of these maps for images of DENSE, where maps are no larger than a
window, or narrower. The segmentors' file has the same blocks and attentions. Detectors
of FLatten, InLine and PolaFormer are not in their checkouts.
``flatten_outputs.npz`` has those of FLatten-Swin's and FLatten-CSWin's attentions with
:func:`focused_weights` and :func:`focused_tokens`; CSWin's takes queries, keys and
values, and has no projection back. They were recorded on a CPU, torch 2.1.2, einops
0.8.2, by running this file on checkouts of
github.com/LeapLabTHU/FLatten-Transformer at abdb115,
github.com/LeapLabTHU/Agent-Attention at 207ce3e,
github.com/LeapLabTHU/InLine at e463a6f and
github.com/ZacharyMeng/PolaFormer at 44cdd39:

    python variants_fixture.py FLATTEN AGENT INLINE POLAFORMER

The official code runs unchanged, with stand-ins for its imports of timm and of the
detection library that it was written for. Numbers of parameters of the papers'
classifiers (``parameters/``) are those of the same code.
"""

import sys
from pathlib import Path

import numpy as np
import recording
import torch

NUM_CLASSES = 5
NAMES = (
    *('flatten_swin', 'flatten_cswin', 'agent_swin', 'agent_cswin', 'agent_detector'),
    *('inline_swin', 'inline_cswin', 'polaformer_swin'),
)
ARCHS = {
    name: dict(embed_dims=8, depths=[1, 2, 2, 1], num_heads=[2, 4, 8, 16])
    if name.endswith('cswin')
    else dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 8])
    for name in NAMES
}
ARCHS['inline_cswin']['depths'] = [1, 2, 1, 1]
ARCHS['inline_swin']['depths'] = ARCHS['polaformer_swin']['depths'] = [1, 2, 2, 1]
# files of the checkouts, classes, and arrangements of attentions
OFFICIAL = dict(
    flatten_swin=('models/flatten_swin.py', 'FLattenSwinTransformer', 'LLSS'),
    flatten_cswin=('models/flatten_cswin.py', 'CSWinTransformer', 'LLSS'),
    agent_swin=(
        *('agent_transformer/models/agent_swin.py', 'AgentSwinTransformer', 'AAMB1'),
    ),
    agent_cswin=(
        *('agent_transformer/models/agent_cswin.py', 'CSWinTransformer', 'AABB'),
    ),
    agent_detector=(
        'downstream/detection/mmdet/models/backbones/agent_swin.py',
        *('AgentSwinTransformer', 'AAAB'),
    ),
    inline_swin=('models/inline_swin.py', 'InLineSwin', 'IIIS'),
    inline_cswin=('models/inline_cswin.py', 'CSWinTransformer', 'IISS'),
    polaformer_swin=('models/pola_swin.py', 'PolaSwinTransformer', 'LLSS'),
)
# recordings of the detectors' backbone, by the size of their image
DENSE = {
    f'agent_detector_{height}x{width}': (height, width)
    for height, width in ((32, 32), (64, 512), (128, 160), (224, 224))
}
DIMS, HEADS, SIDE = 24, 4, 7  # of single attentions
STRIDE, DENSE_STRIDE = 7, 29


def scale(key, shape, value):
    if 'norm' in key and key.endswith('weight'):
        return 1 + 0.1 * value
    if key.endswith(('bias_table', 'positional_encoding', 'scale', 'power', '_bias')):
        return 0.5 * value
    return value / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1 * value


RECORDINGS = {
    families: recording.Recording(name, scale)
    for families, name in (
        (('flatten', 'agent'), 'leaplab'),
        (('inline', 'polaformer'), 'inline'),
    )
}
FOCUSED = recording.Recording('flatten')


def recording_of(name):
    return next(x for families, x in RECORDINGS.items() if name.startswith(families))


def weights(name):
    return recording_of(name).weights(name)


def outputs(name):
    return recording_of(name).outputs(name)


def number_of_parameters(name, size):
    """Of the paper's classifier."""
    return recording_of(name).outputs('parameters')[f'{name}_{size}']


def image(name):
    """One normalized image of noise; two rows of tokens for the attention."""
    if name in DENSE:
        return recording.noise(1, 3, *DENSE[name])
    if name == 'inline_deit':
        return recording.noise(2, 1 + SIDE**2, DIMS)
    return recording.noise(
        1, 3, *((260, 330) if name == 'agent_detector' else (224,) * 2)
    )


def thin(maps, stride=STRIDE):
    """The recorded part of a detector's maps."""
    return {f'map{i}': x.flatten()[::stride] for i, x in enumerate(maps)}


def run(model, x):
    """The recorded outputs of an official model."""
    outs = recording.logits_and_tokens(model, x)
    if isinstance(outs, torch.Tensor):
        return dict(tokens=outs)
    return outs if isinstance(outs, dict) else thin(outs)


def focused_weights():
    """Tensors of both attentions by their official names."""
    shapes = {
        'qkv.weight': (3 * DIMS, DIMS),
        'qkv.bias': (3 * DIMS,),
        'proj.weight': (DIMS, DIMS),
        'proj.bias': (DIMS,),
        'dwc.weight': (DIMS // HEADS, 1, 5, 5),
        'dwc.bias': (DIMS // HEADS,),
        'get_v.weight': (DIMS, 1, 3, 3),
        'get_v.bias': (DIMS,),
        'scale': (1, 1, DIMS),
        'positional_encoding': (1, SIDE**2, DIMS),
    }
    rng = np.random.RandomState(0)
    return {
        key: torch.from_numpy(0.3 * rng.standard_normal(shape)).float()
        for key, shape in shapes.items()
    }


def focused_tokens():
    """Two maps of noise, (2, SIDE * SIDE, DIMS)."""
    return recording.noise(2, SIDE**2, DIMS)


def focused_outputs():
    """Recorded tokens by the name of the model."""
    return FOCUSED.outputs('', mark='')


@torch.no_grad()
def write_focused(swin, cswin):
    """Writes the outputs of both files' attentions."""
    state, x = focused_weights(), focused_tokens()
    swin = swin.FocusedLinearAttention(DIMS, (SIDE, SIDE), HEADS)
    cswin = cswin.FocusedLinearAttention(DIMS, SIDE, -1, num_heads=HEADS)
    for attention in (swin, cswin):
        attention.load_state_dict({key: state[key] for key in attention.state_dict()})
    qkv = torch.nn.functional.linear(x, state['qkv.weight'], state['qkv.bias'])
    qkv = qkv.unflatten(-1, (3, DIMS)).permute(2, 0, 1, 3)
    FOCUSED.write_outputs('', dict(swin=swin(x), cswin=cswin(qkv)), mark='')


@torch.no_grad()
def write_dense(one, detector):
    """Writes outputs of a detector's backbone, which has its weights, for the sizes
    of DENSE."""
    for name in DENSE:
        one.write_outputs(name, thin(detector(image(name)), DENSE_STRIDE))


def options_of(name):
    """Options of an official model."""
    arch, is_cswin = ARCHS[name], name.endswith('cswin')
    options = dict(
        embed_dim=arch['embed_dims'],
        num_heads=arch['num_heads'],
        attn_type=OFFICIAL[name][2],
    )
    options['depth' if is_cswin else 'depths'] = arch['depths']
    options.update(
        dict(la_split_size='56-28-14-7') if is_cswin else dict(window_size=56)
    )
    if name == 'agent_detector':
        shapes = [(9, 9), (12, 12), (14, 14), (7, 7)]
        return dict(options, downstream_agent_shapes=shapes)
    if name.startswith('agent'):
        options['agent_num'] = [9, 16, 49, 49]
    return dict(options, num_classes=NUM_CLASSES)


def main(flatten, agent, inline, polaformer):
    recording.stand_in()
    checkouts = dict(flatten=flatten, agent=agent, inline=inline, polaformer=polaformer)
    for families, one in RECORDINGS.items():
        models = {}
        for name in (x for x in NAMES if x.startswith(families)):
            path = Path(checkouts[name.partition('_')[0]], OFFICIAL[name][0])
            build = getattr(recording.import_file(path), OFFICIAL[name][1])
            models[name] = build(**options_of(name))
        if 'inline' in families:
            deit = recording.import_file(Path(inline, 'models/inline_deit.py'))
            models['inline_deit'] = deit.InLineAttention(DIMS, HEADS, qkv_bias=True)
        one.write(models, run, image)
        if 'agent' in families:
            write_dense(one, models['agent_detector'])
    files = (Path(flatten, OFFICIAL[f'flatten_{x}'][0]) for x in ('swin', 'cswin'))
    write_focused(*map(recording.import_file, files))


if __name__ == '__main__':
    main(*sys.argv[1:])
