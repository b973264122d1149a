_base_ = './retinanet_softpp-t.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
