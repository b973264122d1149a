"""Cascade Mask R-CNN with Agent-Swin-B on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 52.6, mask AP 45.3, 145M parameters, 990 GFLOPs.
    python tools/train.py configs/attention_zoo/cascade-mask-rcnn_swin-b-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/4fcd2d0114bb490483c3/?dl=1#/agent_swin_b.pth'
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[128, 256, 512, 1024]))
