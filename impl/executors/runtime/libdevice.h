// The C library's functions on an NVIDIA GPU: libdevice's, by its names.
#pragma once

#define acosf __nv_acosf
#define acoshf __nv_acoshf
#define asinf __nv_asinf
#define asinhf __nv_asinhf
#define atanf __nv_atanf
#define atan2f __nv_atan2f
#define atanhf __nv_atanhf
#define cosf __nv_cosf
#define coshf __nv_coshf
#define expf __nv_expf
#define exp2f __nv_exp2f
#define exp10f __nv_exp10f
#define fmodf __nv_fmodf
#define ldexpf __nv_ldexpf
#define logf __nv_logf
#define log2f __nv_log2f
#define log10f __nv_log10f
#define nextafterf __nv_nextafterf
#define powf __nv_powf
#define sinf __nv_sinf
#define sinhf __nv_sinhf
#define tanf __nv_tanf
#define tanhf __nv_tanhf
