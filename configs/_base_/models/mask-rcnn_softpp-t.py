_base_ = './mask-rcnn_fpn.py'
model = dict(
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus', arch='tiny', drop_path_rate=0.1, norm_cfg=dict(type='SyncBN', requires_grad=True)
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
)
