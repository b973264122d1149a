"""Mask R-CNN with MLLA-S on COCO, 3x (36 epochs, multi-scale with crops).
Authors' README: box AP 50.5, mask AP 44.9, 63M parameters, 319 GFLOPs.
    python tools/train.py configs/mlla/mask-rcnn_mlla-s_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_mlla-t.py', '../_base_/settings/coco-instance_mlla-ms-crop-3x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/0e5d0b1409d540aaa80c/?dl=1#/mlla_s.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.3))
