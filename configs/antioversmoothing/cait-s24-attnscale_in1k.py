"""CaiT-S24 + AttnScale on ImageNet-1k, 300 epochs at 224 x 224.

Paper: 46.916M + 192 parameters; top-1 83.2 (82.6 without AttnScale)
by fine-tuning, see cait-s24-attnscale_finetune_in1k.py.

    python tools/train.py configs/antioversmoothing/cait-s24-attnscale_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_deit.py',
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

train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))
