_base_ = './retinanet_swin-t.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/a2ddc1190c224f768a41/?dl=1#/agent_swin_t.pth'
model = dict(backbone=dict(attention='agent', dense_agents=True))
