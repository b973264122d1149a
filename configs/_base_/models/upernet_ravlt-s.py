_base_ = './upernet.py'
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
model = dict(
    backbone=dict(
        type='mmlinattn.RAVLT', arch='small', drop_path_rate=0.15, norm_cfg=dict(type='SyncBN', requires_grad=True)
    ),
    decode_head=dict(in_channels=[64, 128, 320, 512]),
    auxiliary_head=dict(in_channels=320),
)
