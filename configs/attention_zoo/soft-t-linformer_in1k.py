"""Linformer in SOFT-Tiny's pyramid on ImageNet-1k, 300 epochs at 224 x 224.
SOFT paper, Table 1: top-1 78.2, 13M parameters, 1.9 GFLOPs.
Keys and values are reduced 8, 4 and 2 times along each side: 49 tokens in the first three stages, as many as SOFT has
landmarks.
    python tools/train.py configs/attention_zoo/soft-t-linformer_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(
    backbone=dict(
        attention=[
            dict(type='mmlinattn.LinformerAttention', sr_ratio=8),
            dict(type='mmlinattn.LinformerAttention', sr_ratio=4),
            dict(type='mmlinattn.LinformerAttention', sr_ratio=2),
            dict(type='mmlinattn.SoftmaxAttention'),
        ]
    )
)
