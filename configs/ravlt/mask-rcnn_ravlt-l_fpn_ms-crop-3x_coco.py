"""Mask R-CNN with RAVLT-L on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 53.6, mask AP 47.3, 114M parameters, 501 GFLOPs.
    python tools/train.py configs/ravlt/mask-rcnn_ravlt-l_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_ravlt-t.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[96, 192, 448, 640]))
# at the same learning rate
train_dataloader = dict(batch_size=1)
auto_scale_lr = dict(base_batch_size=8)
