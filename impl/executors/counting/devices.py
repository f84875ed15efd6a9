"""What a device class serves in a cycle: the constants by which counts of different kinds become comparable."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceClass:
    """Rates of a GPU, each a cycle of its clock: `cores` cores, and what one core does for its simdgroups.

    A rate counts simdgroup instructions, all 32 lanes of them: 0.5 is 16 lanes a cycle.
    """

    name: str
    cores: int
    memory_bytes: float  # that device memory moves in a cycle, of the whole device
    cache_bytes: float  # that the last cache gives in a cycle, of the whole device
    issued: float  # instructions a core
    memory_requests: float  # lines of 128 bytes, or turns of threadgroup memory's banks, a core
    shuffles: float
    float_: float
    half: float
    integer: float  # also comparisons of floats and choices
    product: float  # of integers
    conversion: float
    transcendental: float
    byte_sum: int  # instructions that the sum of a word's four bytes takes
    launch: float  # cycles that one launch takes beside its work
    source: str


H200 = DeviceClass(
    name="h200",
    cores=132,
    # 4.24 TB/s, a device copy measured on one H200, at 1.98 GHz, the highest clock of its data sheet.
    memory_bytes=4.24e12 / 1.98e9,
    cache_bytes=64 * 132,
    issued=4,
    memory_requests=1,
    shuffles=1,
    float_=4,
    half=4,
    integer=2,
    product=2,
    conversion=2,
    transcendental=0.5,
    # dp4a, as the executor cuda writes it.
    byte_sum=1,
    # 2 microseconds: what short kernels in a CUDA graph took there beyond their bound.
    launch=4000,
    source="CUDA C++ Programming Guide 13, arithmetic instructions, compute capability 9.0; NVIDIA H100 architecture "
    "white paper; copy and launch as measured",
)

M1_MAX = DeviceClass(
    name="m1-max",
    cores=32,
    # 400 GB/s at 1.296 GHz.
    memory_bytes=400e9 / 1.296e9,
    cache_bytes=32 * 32,
    issued=4,
    # 64 bytes a cycle; what threadgroup memory gives is not published there, and taken to be the same.
    memory_requests=0.5,
    shuffles=2,
    float_=4,
    half=4,
    integer=4,
    product=1,
    conversion=1,
    transcendental=1,
    byte_sum=7,
    # Nobody has published one: the number of launches decides nothing.
    launch=0,
    source="philipturner/metal-benchmarks, Apple 7; Apple's memory bandwidth; nothing here has been measured",
)

DEVICES = {device.name: device for device in (H200, M1_MAX)}
