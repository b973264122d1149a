_base_ = './upernet.py'
# of Agent-CSWin-T, which has these depths
pretrained = 'https://cloud.tsinghua.edu.cn/f/8c562a74441e46d5902b/?dl=1#/agent_cswin_t.pth'
model = dict(
    backbone=dict(type='mmlinattn.CSWinTransformer', arch='t24181', drop_path_rate=0.2),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)
