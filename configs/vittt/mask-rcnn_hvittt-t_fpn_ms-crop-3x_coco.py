"""Mask R-CNN with H-ViT^3-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 48.9, mask AP 44.0, 48.4M parameters, 271 GFLOPs.
    python tools/train.py configs/vittt/mask-rcnn_hvittt-t_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_hvittt-t.py', '../_base_/settings/coco-instance_hvittt-ms-crop-3x.py']
model = dict(backbone=dict(drop_path_rate=0.3))
