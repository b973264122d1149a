"""ViT-Small/16 in the size that timm's `vit_small_patch16_224` had until 2021: 48M parameters in SOFT's papers."""

_base_ = './image_classifier.py'
model = dict(
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch=dict(embed_dims=768, num_layers=8, num_heads=8),
        block=dict(ffn_ratio=3.0),
        drop_path_rate=0.1,
        out_type='cls_token',
    ),
    head=dict(in_channels=768),
)
