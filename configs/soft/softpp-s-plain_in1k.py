"""SOFT++ without a pyramid on ImageNet-1k, 300 epochs at 224 x 224. Paper, Table 11a: top-1 80.1.
The paper says that it is as large as Small, and no more; ours has the size of DeiT-S: 12 blocks of 384 channels.
    python tools/train.py configs/soft/softpp-s-plain_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(
    backbone=dict(
        arch=dict(_delete_=True, embed_dims=[384], depths=[12], num_heads=[12]),
        patch_embed=dict(type='ConvEmbedding', kernel_size=16, stride=16),
        sampling_ratios=[2],
        kernel_sizes=[3],
        out_type='avg_featmap',
    ),
    head=dict(in_channels=384),
)
