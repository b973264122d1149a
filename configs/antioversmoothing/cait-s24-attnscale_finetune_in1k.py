"""CaiT-S24 + AttnScale on ImageNet-1k, 60 epochs from a pretrained CaiT-S24.

Paper: top-1 83.2 (82.6 without AttnScale), 46.916M + 192 parameters.

WEIGHTS: a classifier's checkpoint, with or without AttnScale. Its class layers
and its head are needed, so it is `load_from` that names it.

    python tools/train.py \
        configs/antioversmoothing/cait-s24-attnscale_finetune_in1k.py \
        --cfg-options load_from=WEIGHTS
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_finetune_60e.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.CaiT',
        arch='s24',
        out_type='cls_token',
        drop_path_rate=0.1,
        attn_scale=True,
    ),
    head=dict(in_channels=384),
)

train_dataloader = dict(batch_size=64, sampler=dict(type='RepeatAugSampler'))

# the whole classifier starts from load_from, its backbone alone from pretrained
pretrained = None
custom_hooks = [dict(type='mmlinattn.PretrainedBackboneHook')]
