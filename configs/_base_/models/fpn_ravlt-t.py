_base_ = 'mmseg::_base_/models/fpn_r50.py'
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_T.pth#/RAVLT_T.pth'
model = dict(
    data_preprocessor=dict(size=(512, 512)),
    pretrained=None,
    backbone=dict(
        _delete_=True,
        type='mmlinattn.RAVLT',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
    decode_head=dict(num_classes=150),
)
