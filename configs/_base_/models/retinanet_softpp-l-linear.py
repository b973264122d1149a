_base_ = './retinanet_softpp-l.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
