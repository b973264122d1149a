"""ViT-Small/16 with one projection for queries and keys on ImageNet-1k, 300 epochs at 224 x 224.
Paper, Table 8: top-1 80.5 (80.8 with two projections).
Its 48M parameters of Table 3, with two projections, are those of timm: 8 blocks of 768 channels, FFNs 3 times as wide.
    python tools/train.py configs/soft/vit-s-sharedqk_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(
    backbone=dict(
        arch=dict(_delete_=True, embed_dims=768, num_layers=8, num_heads=8),
        num_layers=None,
        block=dict(ffn_ratio=3.0),
        attention=dict(type='mmlinattn.SoftmaxAttention', shared_qk=True),
    ),
    head=dict(in_channels=768),
)
