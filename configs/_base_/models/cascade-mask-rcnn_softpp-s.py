_base_ = 'mmdet::_base_/models/cascade-mask-rcnn_r50_fpn.py'
pretrained = None
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmlinattn.SOFTPlusPlus',
        arch='small',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
