_base_ = './retinanet_softpp-s.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
