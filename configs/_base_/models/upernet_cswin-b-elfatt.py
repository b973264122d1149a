_base_ = './upernet_cswin-t-elfatt.py'
# of Agent-CSWin-B, which has these depths
pretrained = 'https://cloud.tsinghua.edu.cn/f/c8035b0839b2410c8c9f/?dl=1#/agent_cswin_b.pth'
model = dict(
    backbone=dict(arch='b36292', drop_path_rate=0.6),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
