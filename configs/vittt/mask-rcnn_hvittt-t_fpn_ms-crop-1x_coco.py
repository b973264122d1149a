"""Mask R-CNN with H-ViT^3-T on COCO, 1x (12 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 47.3, mask AP 42.8, 48.4M parameters, 271 GFLOPs.
    python tools/train.py configs/vittt/mask-rcnn_hvittt-t_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_hvittt-t.py', '../_base_/settings/coco-instance_hvittt-ms-crop-1x.py']
