_base_ = './mask-rcnn_swin-t.py'
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_small_patch4_window7_224.pth'
model = dict(backbone=dict(arch='small'))
