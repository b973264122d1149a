_base_ = './mask-rcnn_fpn.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/f0c7c73ceabe49b7b161/?dl=1#/h_vittt_t.pth'
model = dict(
    backbone=dict(type='mmlinattn.HViTTT', arch='tiny', drop_path_rate=0.1), neck=dict(in_channels=[64, 128, 320, 512])
)
