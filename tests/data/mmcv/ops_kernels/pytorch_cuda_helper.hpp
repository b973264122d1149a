// Stands in for mmcv's, which includes headers of CUDA.
#pragma once
#include "cuda.h"
#include "common_cuda_helper.hpp"
