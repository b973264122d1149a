_base_ = './mask-rcnn_cswin-t-elfatt.py'
pretrained = 'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/cswin_base_224.pth'
model = dict(backbone=dict(arch='b36292', drop_path_rate=0.6), neck=dict(in_channels=[96, 192, 384, 768]))
