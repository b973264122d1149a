"""Swin-T with one projection for queries and keys on ImageNet-1k, 300 epochs at 224 x 224.
Paper, Table 8: top-1 80.9 (81.3 with two projections).
    python tools/train.py configs/soft/swin-t-sharedqk_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_swin-300e.py']
model = dict(
    backbone=dict(
        attention=[
            [
                dict(type='mmlinattn.WindowAttention', shared_qk=True, pad_small_map=False),
                dict(type='mmlinattn.WindowAttention', shift_size=3, shared_qk=True, pad_small_map=False),
            ]
        ]
        * 4
    )
)
