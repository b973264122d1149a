_base_ = './mask-rcnn_fpn.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/7a19712877cb4242889c/?dl=1#/mlla_t.pth'
model = dict(
    backbone=dict(type='mmlinattn.MLLA', arch='tiny', drop_path_rate=0.1), neck=dict(in_channels=[64, 128, 256, 512])
)
