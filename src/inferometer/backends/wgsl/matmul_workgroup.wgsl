//! op: matmul
//! reference: linear
// out = x · weight + bias for the rows of the pass, by tiles in workgroup memory. For GPUs; on CPU adapters workgroup
// memory costs as much as storage, and barriers more.
// Grid (ceil(N / 32), ceil(T / 64)), 64 threads; 6 KiB of workgroup memory.
// Memory at least: N * K weights and T * K f32 read, T * N f32 written; K is a multiple of 8, of 32 where weights
// aren't f16.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: matmul_operands
//! include: matmul_by_workgroup
