_base_ = './retinanet_cswin-t-elfatt.py'
# of Agent-CSWin-B, which has these depths
pretrained = 'https://cloud.tsinghua.edu.cn/f/c8035b0839b2410c8c9f/?dl=1#/agent_cswin_b.pth'
model = dict(backbone=dict(arch='b36292', drop_path_rate=0.6), neck=dict(in_channels=[192, 384, 768]))
