"""Cascade Mask R-CNN with Agent-Swin-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 52.6, mask AP 45.5, 107M parameters, 843 GFLOPs.
    python tools/train.py configs/attention_zoo/cascade-mask-rcnn_swin-s-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/f607172c9fea4d6e99bb/?dl=1#/agent_swin_s.pth'
model = dict(backbone=dict(arch='small'))
