# shellcheck shell=bash
# Metal's API and shader validation, for the steps that source this file. Apple: man MetalValidation; MLX's own tests set
# the two METAL_ variables. Metal reads them when a process makes its first device.
# By default a stray access is dropped, told to the system's log and forgotten: whatever is not stopped would pass.
export MTL_DEBUG_LAYER=1
export MTL_DEBUG_LAYER_ERROR_MODE=assert
export MTL_DEBUG_LAYER_WARNING_MODE=nslog
export MTL_SHADER_VALIDATION=1
export MTL_SHADER_VALIDATION_REPORT_TO_STDERR=1
export MTL_SHADER_VALIDATION_ABORT_ON_FAULT=1
export METAL_DEVICE_WRAPPER_TYPE=1
export METAL_DEBUG_ERROR_MODE=0
