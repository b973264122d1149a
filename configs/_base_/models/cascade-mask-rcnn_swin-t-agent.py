"""Cascade Mask R-CNN with Swin's heads, which MMDetection has for ConvNeXt: four convolutions and GIoU."""

_base_ = './cascade-mask-rcnn_ravlt-s.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/a2ddc1190c224f768a41/?dl=1#/agent_swin_t.pth'
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmlinattn.SwinTransformer',
        arch='tiny',
        attention='agent',
        dense_agents=True,
        drop_path_rate=0.1,
        pad_small_map=True,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
