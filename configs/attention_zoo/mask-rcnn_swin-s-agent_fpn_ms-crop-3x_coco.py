"""Mask R-CNN with Agent-Swin-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 48.9, mask AP 43.8, 69M parameters, 364 GFLOPs.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-s-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/f607172c9fea4d6e99bb/?dl=1#/agent_swin_s.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.1))
