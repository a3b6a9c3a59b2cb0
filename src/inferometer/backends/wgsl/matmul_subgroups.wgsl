//! op: matmul
//! reference: linear
//! requires: subgroups
// out = x · weight + bias for the rows of the pass. A thread makes 16 rows x 8 columns: 8 loads of weights and 8 of x for
// 1,024 multiply-adds, a quarter of matmul_tile's for each. For CPU adapters, where a load costs every lane on its own and
// a broadcast is one instruction: three to five times matmul_tile's rate on lavapipe.
// Grid (ceil(N / (THREADS * 8)), ceil(T / 16)). Columns beyond the last are read from the last, and not written.
// Memory at least: N * K weights and T * K f32 read, T * N f32 written; K is a multiple of 8, of 32 where weights
// aren't f16.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 8u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: matmul_operands
//! include: matmul_by_subgroup
