_base_ = './upernet.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/f0c7c73ceabe49b7b161/?dl=1#/h_vittt_t.pth'
model = dict(
    backbone=dict(type='mmlinattn.HViTTT', arch='tiny', drop_path_rate=0.2),
    decode_head=dict(in_channels=[64, 128, 320, 512]),
    auxiliary_head=dict(in_channels=320),
)
